"""Walks through z, what is written where, and runs whose networks `common/models.py` does not have."""

import re
import runpy

import numpy as np
import pytest
import torch
from helpers import ROOT, change
from PIL import Image
from torch.optim.swa_utils import AveragedModel

from common.data import to_uint8
from common.errors import BadInput
from scripts.tools import evaluate, sample
from scripts.tools.sample import Options


def array(options, folder):
    sample.main(Options(**options, output=folder / "images.npz"))
    return np.load(folder / "images.npz")["images"]


def test_what_exists_is_left_alone_but_for_the_grid_of_the_run(run, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "mine.png").write_text("mine")
    for name in ("images", "mine.png"):
        with pytest.raises(BadInput, match=f"--output .*{name}: exists already"):
            sample.main(Options(run, output=tmp_path / name))
    assert (tmp_path / "mine.png").read_text() == "mine"
    for count in (4, 9):
        sample.main(Options(run, count=count))
        assert Image.open(run / "samples.png").width == round(count**0.5) * 58 + 2


def test_an_array_has_the_images_of_the_grid_and_of_the_files_of_a_folder(run, tmp_path):
    images = array({"run": run, "count": 4}, tmp_path)
    sample.main(Options(run, count=4))
    grid = np.array(Image.open(run / "samples.png"))
    assert grid.shape == (2 * 58 + 2, 2 * 58 + 2)  # grey, each image at twice its 28 pixels
    assert np.array_equal(grid[60:116:2, 2:58:2], images[2, 0])
    sample.main(Options(run, count=4, output=tmp_path / "images"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(4)]
    assert np.array_equal(np.stack([np.array(Image.open(file)) for file in files])[:, None], images)


def test_the_average_is_the_one_that_the_checkpoint_names_and_what_was_taken_is_printed(run, untrained, capsys):
    def outcome(**averages):
        change(run, lambda checkpoint: checkpoint.update(averages))
        sample.main(Options(run))
        evaluate.main(evaluate.Options(run, count=10))
        printed, errors = capsys.readouterr()
        kinds = re.findall(r"samples.png \((.*) weights\)|, (.*) weights, 10 images", printed)
        return [first or second for first, second in kinds], errors, (run / "samples.png").read_bytes()

    average = outcome()
    assert average[:2] == (["average"] * 2, "")
    change(run, lambda checkpoint: checkpoint.update(ema=checkpoint.pop("average")))
    last = outcome(averages={"discriminator": "ema"})
    assert last[:2] == (["last"] * 2, "") and last[2] != average[2]
    assert outcome(averages={"generator": "ema"}) == average


OWN = """
import math
import torch

class Wave(torch.nn.Module):
    def __init__(self, pixels):
        super().__init__()
        self.register_buffer("wave", torch.linspace(-1, 1, pixels), persistent=False)  # in no checkpoint

    def forward(self, pixels):
        return (pixels + self.wave).tanh()

def make_networks(image_shape, z_dim):
    pixels = math.prod(image_shape)
    layers = torch.nn.Linear(z_dim, pixels), Wave(pixels), torch.nn.Dropout(), torch.nn.Unflatten(1, image_shape)
    return torch.nn.Sequential(*layers), None
"""


@pytest.fixture
def own(run, tmp_path):
    """The file that makes the networks of `run`, and the generator."""
    script = tmp_path / "own.py"
    script.write_text(OWN)
    average = AveragedModel(runpy.run_path(str(script))["make_networks"]((1, 28, 28), 8)[0])
    change(run, lambda checkpoint: checkpoint.update(average=average.state_dict()))
    return script, average


def test_a_run_with_networks_of_its_own_is_sampled_and_one_on_floats_gives_them_as_they_are(own, run, tmp_path):
    script, average = own
    options = {"run": run, "count": 5, "networks": f"{script}:make_networks", "device": "cpu"}
    expected = average.eval()(torch.randn(5, 8, generator=torch.Generator().manual_seed(0))).detach()
    found = array(options, tmp_path)
    assert np.abs(found.astype(int) - to_uint8(expected).numpy()).max() <= 1  # rounded to the other side, at most
    change(run, lambda checkpoint: checkpoint.update(data_types=["float32"]))
    for output in (None, tmp_path / "folder", tmp_path / "grid.png"):
        with pytest.raises(BadInput, match="are floats, not images; name a new"):
            sample.main(Options(**options, output=output))
    sample.main(Options(**options, output=tmp_path / "floats.npz"))
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "floats.npz")["samples"]), expected)


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        (None, "--networks FILE:FUNCTION"),
        ("{script}", "must be FILE:FUNCTION"),
        ("no_such.py:networks", "No such file"),
        ("{script}:no_such", "has no function no_such"),
        ("{script}:Wave", "TypeError: Wave.__init__() takes 2"),
        (f"{ROOT / 'common' / 'models.py'}:mlp", "does not hold this network"),
    ],
)
def test_what_makes_no_networks_of_the_run_is_refused_in_one_line(networks, told, own, run, refusal):
    options = ["--networks", networks.format(script=own[0])] if networks else []
    assert told in refusal("sample", run, *options)
    change(run, lambda checkpoint: checkpoint["options"].update(model="mine"))
    assert told in refusal("sample", run, *options)
