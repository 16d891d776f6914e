"""Walks through z, what is written where, and runs whose networks `common/models.py` does not have."""

import runpy

import numpy as np
import pytest
import torch
from helpers import ROOT, change
from PIL import Image
from torch.optim.swa_utils import AveragedModel

from common.data import to_uint8
from common.errors import BadInput
from scripts.tools import sample
from scripts.tools.sample import Options


def array(options, folder):
    sample.main(Options(**options, output=folder / "images.npz"))
    return np.load(folder / "images.npz")["images"]


def test_a_folder_holds_the_images_of_the_array_one_to_a_file(run, tmp_path):
    sample.main(Options(run, count=12, output=tmp_path / "images"))
    files = sorted((tmp_path / "images").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(12)]
    images = np.stack([np.array(Image.open(file)) for file in files])[:, None]
    assert np.array_equal(images, array({"run": run, "count": 12}, tmp_path))


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


def test_a_run_that_translates_in_one_direction_is_not_taken_for_a_cyclegan(run, tmp_path):
    expected = array({"run": run, "count": 2}, tmp_path)
    (tmp_path / "images.npz").unlink()
    change(run, lambda checkpoint: checkpoint.update(a_to_b={}))
    assert np.array_equal(array({"run": run, "count": 2}, tmp_path), expected)


def test_the_rows_of_the_grid_are_the_walks_which_must_fill_it(run, tmp_path):
    sample.main(Options(run, count=12, interpolate=6))
    grid = np.array(Image.open(run / "samples.png"))
    assert grid.shape == (2 * 58 + 2, 6 * 58 + 2)  # grey, each image at twice its 28 pixels
    images = array({"run": run, "count": 12, "interpolate": 6}, tmp_path)
    assert np.array_equal(grid[60:116:2, 292:348:2], images[11, 0])
    with pytest.raises(BadInput, match="--interpolate 7: must be 2 or more and divide the --count of 64"):
        sample.main(Options(run, count=64, interpolate=7))


OWN = '''
import math
import torch

class Wave(torch.nn.Module):
    """Adds a fixed pattern that no checkpoint holds."""

    def __init__(self, pixels):
        super().__init__()
        self.register_buffer("wave", torch.linspace(-1, 1, pixels), persistent=False)

    def forward(self, pixels):
        return (pixels + self.wave).tanh()

def make_networks(image_shape, z_dim):
    pixels = math.prod(image_shape)
    layers = torch.nn.Linear(z_dim, pixels), Wave(pixels), torch.nn.Dropout(), torch.nn.Unflatten(1, image_shape)
    return torch.nn.Sequential(*layers), None

def broken(image_shape, z_dim):
    return layers
'''


@pytest.fixture
def own(run, tmp_path):
    """The file that makes the networks of `run`, and the generator."""
    script = tmp_path / "own.py"
    script.write_text(OWN)
    average = AveragedModel(runpy.run_path(str(script))["make_networks"]((1, 28, 28), 8)[0])
    change(run, lambda checkpoint: checkpoint.update(average=average.state_dict()))
    return script, average


def test_a_run_with_networks_of_its_own_is_sampled(own, run, tmp_path):
    script, average = own
    found = array({"run": run, "count": 5, "networks": f"{script}:make_networks", "device": "cpu"}, tmp_path)
    with torch.no_grad():
        expected = to_uint8(average.eval()(torch.randn(5, 8, generator=torch.Generator().manual_seed(0)))).numpy()
    assert np.abs(found.astype(int) - expected).max() <= 1  # rounded to the other side, at most


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        (None, "--networks FILE:FUNCTION"),
        ("{script}", "must be FILE:FUNCTION"),
        ("no_such.py:networks", "No such file"),
        ("{script}:no_such", "has no function no_such"),
        ("{script}:broken", "NameError: name 'layers' is not defined"),
        (f"{ROOT / 'common' / 'models.py'}:mlp", "does not hold this network"),
    ],
)
def test_what_makes_no_networks_of_the_run_is_refused_in_one_line(networks, told, own, run, refusal):
    options = ["--networks", networks.format(script=own[0])] if networks else []
    assert told in refusal("sample", run, *options)
    change(run, lambda checkpoint: checkpoint["options"].update(model="mine"))
    assert told in refusal("sample", run, *options)
