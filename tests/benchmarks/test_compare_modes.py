"""The comparison of modes trains each script for the seconds that it is given, and tells what evaluate.py finds."""

import json

import pytest
import torch
from helpers import call, load
from torch import nn

from scripts.benchmarks import compare_modes
from scripts.tools import digit_classifier, evaluate


@pytest.fixture
def untrained(monkeypatch):
    """A classifier that takes no time to train, for few samples."""
    monkeypatch.setattr(evaluate, "STACKED_COUNT", 100)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()
    monkeypatch.setattr(digit_classifier, "digit_classifier", lambda: (network, 0.1))


@pytest.mark.tools
def test_a_run_ends_after_its_seconds_and_its_figures_are_in_the_table(tmp_path, capsys, untrained):
    figures = tmp_path / "figures.json"
    options = "--orders r3_lazy --seconds 4 --model mlp --seeds 1 --device cpu --z-dim 5 --evaluate-every 50"
    call("compare_modes", *options.split(), "--runs-dir", tmp_path, "--output", figures)
    (run,) = tmp_path.glob("stacked-digits/gan_r3/*")
    assert load(run)["options"].items() >= {"seed": 0, "penalty_every": 5, "z_dim": 5}.items()
    entries = json.loads((run / "evaluation.json").read_text())
    assert entries[-1]["checkpoint"] == "checkpoint.pt"
    assert {entry["step"] % 50 for entry in entries[:-1]} == {0}

    result = json.loads(figures.read_text())
    assert not {"runs_dir", "output"} & result["options"].keys()  # paths of this machine
    (points,) = result["runs"]["r3_lazy"]
    assert [point["steps"] for point in points] == [entry["step"] for entry in entries]
    assert points[-1].items() >= entries[-1]["samples"].items()
    seconds = [point["seconds"] for point in points]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < 4 <= seconds[-1]
    assert compare_modes.report(result) in capsys.readouterr().out


@pytest.mark.tools
def test_own_networks_are_trained_and_evaluated_and_what_cannot_train_them_says_why(tmp_path, capsys, untrained):
    (tmp_path / "own.py").write_text(
        "from torch import nn\n"
        "def make(shape, z_dim):\n"
        "    layers = nn.Flatten(), nn.Linear(2352, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)\n"
        "    return nn.Sequential(nn.Linear(z_dim, 2352), nn.Unflatten(1, shape)), nn.Sequential(*layers)\n"
    )
    short = ["--orders", "detach", "one_stage", "--seconds", 2, "--seeds", 1, "--device", "cpu", "--runs-dir", tmp_path]
    call("compare_modes", *short, "--networks", f"{tmp_path / 'own.py'}:make")
    rows = capsys.readouterr().out.split("\n\n")[2].splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["one_stage", "detach", "real images"]
    assert "gan_one_stage.py ended by itself, with status 1: " in rows[2]
    assert "depends on the other samples of the batch" in rows[2]
