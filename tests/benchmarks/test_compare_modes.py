"""The comparison of modes trains each script for the seconds that it is given, and tells what evaluate.py finds."""

import json

import pytest
from helpers import call, load, make_images

from scripts.benchmarks import compare_modes


@pytest.mark.tools
def test_a_run_ends_after_its_seconds_and_its_figures_are_in_the_table(tmp_path, capsys, untrained):
    figures = tmp_path / "figures.json"
    options = "--orders r3 --seconds 4 --model mlp --seeds 1 --device cpu --z-dim 5 --evaluate-every 20 --target 1e9"
    call("compare_modes", *options.split(), "--dataset", "mnist5k", "--runs-dir", tmp_path, "--output", figures)
    (run,) = tmp_path.glob("mnist5k/gan_r3/*")
    assert load(run)["options"].items() >= {"seed": 0, "penalty_every": 5, "z_dim": 5}.items()
    (entry,) = json.loads((run / "evaluation.json").read_text())
    assert entry["checkpoint"] == "checkpoint.pt"

    result = json.loads(figures.read_text())
    assert not {"runs_dir", "output"} & result["options"].keys()  # paths of this machine
    (points,) = result["runs"]["r3"]
    assert {point["steps"] % 20 for point in points[:-1]} == {0}
    assert points[-1].items() >= {"steps": entry["step"], **entry["samples"]}.items()
    seconds = [point["seconds"] for point in points]
    assert points[-1]["seconds_to_target"] == seconds[0]  # any FID is below this target
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < 4 <= seconds[-1]
    assert compare_modes.report(result) in capsys.readouterr().out


def test_a_folder_of_too_few_images_is_refused_before_the_training(tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(compare_modes, "train", None)
    make_images(tmp_path, 7)
    line = refusal("compare_modes", "--dataset", tmp_path)
    assert f"{tmp_path}: has 7 images" in line
    assert "--count" not in line  # which compare_modes.py does not have


@pytest.mark.tools
def test_own_networks_are_trained_and_evaluated_and_what_cannot_train_them_says_why(tmp_path, capsys, untrained):
    (tmp_path / "own.py").write_text(
        "from torch import nn\n"
        "def make(shape, z_dim):\n"
        "    layers = nn.Flatten(), nn.Linear(784, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)\n"
        "    return nn.Sequential(nn.Linear(z_dim, 784), nn.Unflatten(1, shape)), nn.Sequential(*layers)\n"
    )
    short = ["--orders", "detach", "one_stage", "--seconds", 2, "--seeds", 1, "--device", "cpu", "--runs-dir", tmp_path]
    call("compare_modes", *short, "--networks", f"{tmp_path / 'own.py'}:make")
    rows = capsys.readouterr().out.split("\n\n")[2].splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["one_stage", "detach", "real images"]
    assert "gan_one_stage.py ended by itself, with status " in rows[2]
    assert "depends on the other samples of the batch" in rows[2]
