"""The comparison of modes trains each script for the seconds that it is given, and tells what evaluate.py finds."""

import json

import pytest
import torch
from helpers import call
from torch import nn

from scripts.benchmarks import compare_modes
from scripts.tools import digit_classifier, evaluate

SHORT = "--orders r3_lazy --seconds 4 --model mlp --seeds 1 --device cpu"


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
    options = ["--z-dim", 5, "--runs-dir", tmp_path, "--evaluate-every", 50, "--output", figures]
    call("compare_modes", *SHORT.split(), *options)
    (run,) = tmp_path.glob("stacked-digits/gan_r3/*")
    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True)
    assert checkpoint["options"]["seed"] == 0
    assert checkpoint["options"]["penalty_every"] == 5
    assert checkpoint["options"]["z_dim"] == 5
    *earlier, last = json.loads((run / "evaluation.json").read_text())
    found = last["samples"]
    assert last["checkpoint"] == "checkpoint.pt"
    assert earlier
    assert {entry["step"] % 50 for entry in earlier} == {0}

    result = json.loads(figures.read_text())
    assert not {"runs_dir", "output"} & result["options"].keys()  # paths of this machine
    (points,) = result["runs"]["r3_lazy"]
    assert [point["steps"] for point in points] == [entry["step"] for entry in (*earlier, last)]
    assert points[-1]["modes"] == found["modes"]
    seconds = [point["seconds"] for point in points]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < 4 <= seconds[-1]
    assert points[-1]["reverse_kl"] == found["reverse_kl"]
    assert compare_modes.report(result) in capsys.readouterr().out


@pytest.mark.tools
def test_a_script_that_ends_by_itself_is_told_with_its_last_line(tmp_path, outcome):
    (tmp_path / "stacked-digits").touch()
    status, _, err = outcome("compare_modes", *SHORT.split(), "--runs-dir", tmp_path)
    assert status == 1
    assert "gan_r3.py ended by itself, with status 2: error: --runs-dir" in err.splitlines()[-1]


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
    assert "depends on the other samples of the batch" in rows[2]


def test_medians_and_ranges_are_those_of_the_ends_of_the_runs():
    figures = {"reverse_kl": 1, "confident": 0.5, "seconds": 2.0}
    runs = [[{"steps": 5}, figures | {"modes": modes, "steps": 10}] for modes in (900, 1000, 990)]
    real = [{"modes": 1000, "reverse_kl": 0, "confident": 0.9}]
    result = {"options": {"dataset": "stacked-digits"}, "runs": {"detach": runs}, "real images": real}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in compare_modes.report(result).splitlines()]
    confident = "50.0% (50.0%-50.0%)"
    assert rows[2] == ["detach", "990 (900-1,000)", "1.000 (1.000-1.000)", confident, "10 (10-10)", "2.0 (2.0-2.0)"]
    assert rows[3][:2] == ["real images", "1,000 (1,000-1,000)"]
    assert rows[3][4:] == ["", ""]
