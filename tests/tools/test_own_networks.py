"""A copied script with a pair of networks of its own: it trains, and is sampled and evaluated with `--networks`."""

import json
import runpy
import sys

import numpy as np
import pytest
import torch
from helpers import ROOT, path_of
from torch.optim.swa_utils import AveragedModel

from common.data import to_uint8
from common.run.command_line import launch
from scripts.tools import digit_classifier, evaluate, sample

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


@pytest.fixture
def command(monkeypatch):
    """A function that runs a tool's command line in this process."""

    def run(tool, *arguments):
        monkeypatch.setattr(sys, "argv", [tool.__name__, *map(str, arguments), "--device", "cpu"])
        monkeypatch.setattr(sys, "path", [*sys.path])
        launch(tool.main, tool.Options)

    return run


def test_a_run_with_networks_of_its_own_is_sampled(trained, command, tmp_path):
    script, run = trained
    output = tmp_path / "images.npz"
    command(sample, run, "--networks", f"{script}:make_networks", "--count", 5, "--output", output)

    average = AveragedModel(runpy.run_path(str(script))["make_networks"]((1, 8, 8), 4)[0])
    average.load_state_dict(torch.load(run / "checkpoint.pt", weights_only=True)["average"])
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = to_uint8(average(z)).numpy()
    assert np.abs(np.load(output)["images"].astype(int) - expected).max() <= 1  # rounded to the other side, at most


def test_a_run_with_networks_of_its_own_is_evaluated(trained, command, monkeypatch):
    script, run = trained
    features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 128), torch.nn.Linear(128, 10)).eval()
    monkeypatch.setattr(digit_classifier, "digit_classifier", lambda: (features, 0.1))  # to train one takes long
    command(evaluate, run, "--networks", f"{script}:make_networks", "--count", 20)
    assert json.loads((run / "evaluation.json").read_text())[0]["samples"]["fid"] > 0


@pytest.mark.parametrize("tool", [sample, evaluate])
@pytest.mark.parametrize("model", ["mlp", "conv", "mine", None])
def test_without_the_option_the_message_names_it(tool, model, trained, command, capsys, tmp_path):
    checkpoint = torch.load(trained[1] / "checkpoint.pt", weights_only=True)
    if model is None:
        del checkpoint["options"]["model"]
    else:
        checkpoint["options"]["model"] = model
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    with pytest.raises(SystemExit, match="2"):
        command(tool, tmp_path)
    (line,) = capsys.readouterr().err.splitlines()
    assert "--networks FILE:FUNCTION" in line


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        ("", "must be FILE:FUNCTION"),
        ("{script}", "must be FILE:FUNCTION"),
        ("no_such.py:networks", "No such file"),
        ("{script}:no_such", "has no function no_such"),
        ("{script}:broken", "NameError: name 'layers' is not defined"),
        (f"{ROOT / 'common' / 'models.py'}:mlp", "does not hold this network"),
    ],
)
def test_what_makes_no_networks_is_refused_in_one_line(networks, told, trained, command, capsys):
    script, run = trained
    with pytest.raises(SystemExit, match="2"):
        command(sample, run, "--networks", networks.format(script=script))
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
