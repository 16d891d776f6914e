"""A copied script with a pair of networks of its own: it trains, and is sampled with `--networks`."""

import runpy
import sys

import numpy as np
import pytest
import torch
from helpers import ROOT, call, path_of
from torch.optim.swa_utils import AveragedModel

from common.data import to_uint8

OWN = '''
class Wave(torch.nn.Module):
    """Adds a fixed pattern that no checkpoint holds."""

    def __init__(self, pixels):
        super().__init__()
        self.register_buffer("wave", torch.linspace(-1, 1, pixels), persistent=False)

    def forward(self, pixels):
        return (pixels + self.wave).tanh()


def make_networks(image_shape, z_dim):
    pixels = math.prod(image_shape)
    generator = torch.nn.Sequential(torch.nn.Linear(z_dim, pixels), Wave(pixels), torch.nn.Unflatten(1, image_shape))
    return generator, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(pixels, 1))


def broken(image_shape, z_dim):
    return layers


def main('''
EDITS = [
    ("import sys\n", "import math\nimport sys\n"),
    ("\ndef main(", OWN),
    ("MODELS[options.model](", "make_networks("),
]
TINY = "--image-size 8 --z-dim 4 --batch-size 4 --steps 2 --device cpu"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A script that was copied and edited, and the run that it has made."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "scripts").mkdir()
    (folder / "common").symlink_to(ROOT / "common")
    text = path_of("gan_detach").read_text()
    for old, new in EDITS:
        assert old in text
        text = text.replace(old, new)
    script = folder / "scripts" / "gan_mine.py"
    script.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "argv", ["gan_mine.py", *TINY.split(), "--runs-dir", str(folder / "runs")])
        runpy.run_path(str(script), run_name="__main__")
    (run,) = (folder / "runs").glob("gan_mine/*")
    return script, run


def test_a_run_with_networks_of_its_own_is_sampled(trained, tmp_path):
    script, run = trained
    output = tmp_path / "images.npz"
    call("sample", run, "--networks", f"{script}:make_networks", "--count", 5, "--output", output, "--device", "cpu")
    average = AveragedModel(runpy.run_path(str(script))["make_networks"]((1, 8, 8), 4)[0])
    average.load_state_dict(torch.load(run / "checkpoint.pt", weights_only=True)["average"])
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = to_uint8(average(z)).numpy()
    assert np.abs(np.load(output)["images"].astype(int) - expected).max() <= 1  # rounded to the other side, at most


@pytest.mark.parametrize("model", ["mlp", "mine"])
def test_without_the_option_the_message_names_it(model, trained, refusal, tmp_path):
    checkpoint = torch.load(trained[1] / "checkpoint.pt", weights_only=True)
    checkpoint["options"]["model"] = model
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    assert "--networks FILE:FUNCTION" in refusal("sample", tmp_path)


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        ("{script}", "must be FILE:FUNCTION"),
        ("no_such.py:networks", "No such file"),
        ("{script}:no_such", "has no function no_such"),
        ("{script}:broken", "NameError: name 'layers' is not defined"),
        (f"{ROOT / 'common' / 'models.py'}:mlp", "does not hold this network"),
    ],
)
def test_what_makes_no_networks_is_refused_in_one_line(networks, told, trained, refusal):
    script, run = trained
    assert told in refusal("sample", run, "--networks", networks.format(script=script))
