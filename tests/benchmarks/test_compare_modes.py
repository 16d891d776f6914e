"""The comparison of modes trains each script with its own options, and tells what evaluate.py finds."""

import json

import pytest
from filelock import FileLock
from helpers import call, load, make_images

from scripts.benchmarks import compare_modes


@pytest.mark.tools
def test_the_figures_of_a_run_and_of_its_checkpoints_are_in_the_table(tmp_path, capsys, untrained):
    figures = tmp_path / "figures.json"
    options = "--orders r3 --steps 110 --model mlp --seeds 1 --device cpu --z-dim 5 --evaluate-every 20 --target 1e9"
    call("compare_modes", *options.split(), "--dataset", "mnist5k", "--runs-dir", tmp_path, "--output", figures)
    (run,) = tmp_path.glob("mnist5k/gan_r3/*")
    assert load(run)["options"].items() >= {"seed": 0, "penalty_every": 5, "z_dim": 5}.items()
    (entry,) = json.loads((run / "evaluation.json").read_text())
    assert entry["checkpoint"] == "checkpoint.pt"

    result = json.loads(figures.read_text())
    assert not {"runs_dir", "output"} & result["options"].keys()  # paths of this machine
    (points,) = result["runs"]["r3"]
    assert {20, 100} <= {point["steps"] for point in points[:-1]} <= {20, 40, 60, 80, 100}
    assert points[-1]["steps"] == 110
    assert points[-1].items() >= {"steps": entry["step"], **entry["samples"]}.items()
    seconds = [point["seconds"] for point in points]
    assert points[-1]["seconds_to_target"] == seconds[0]  # any FID is below this target
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < seconds[-1]
    printed = capsys.readouterr().out
    assert compare_modes.report(result) in printed
    assert (result["features"], result["real"]) == (entry["features"], entry["real"]) == ("digits", "training")
    assert f"{entry['count']} samples, compared with training images; features: digits" in printed


def test_a_second_comparison_in_the_same_folder_is_refused_before_it_trains(tmp_path, refusal):
    (tmp_path / "mnist5k").mkdir()
    with FileLock(tmp_path / "mnist5k" / ".lock"):
        line = refusal("compare_modes", "--runs-dir", tmp_path)
    assert f"{tmp_path / 'mnist5k'}: another process is training this run; wait for it" in line


def test_a_folder_of_too_few_images_is_refused_before_the_training(tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(compare_modes, "train", None)
    make_images(tmp_path, 7)
    line = refusal("compare_modes", "--dataset", tmp_path)
    assert f"{tmp_path}: has 7 images" in line
    assert "--count" not in line  # which compare_modes.py does not have
