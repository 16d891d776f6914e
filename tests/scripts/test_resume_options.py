"""Which options a run is resumed with: its own, and those that say where it goes on and how long."""

import shutil

import pytest
from helpers import call, change, load, make_images

TINY = ["--model", "mlp", "--image-size", "8", "--batch-size", "4", "--device", "cpu", "--checkpoint-every", "2"]


def resume(run, *arguments):
    call("gan_detach", "--resume", run, *arguments)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")


REFUSED = {
    "gan_detach --resume {run} --lr=0.1": "--lr=0.1: the run {run} has --lr=0.003; leave it out",
    "gan_detach --resume {run} --betas 0.5 0.9": "the run {run} has --betas 0.0 0.9; leave it out",
    "gan_detach --resume {run} --steps=2": "--steps=2: the run {run} has 3, which can only be raised",
    "gan_detach --resume {run}/nowhere": "{run}/nowhere: not found",
    "gan_detach --resume {run}/samples": "checkpoint.pt: not found",
    "gan_detach --resume {run}/checkpoint.pt": "name the run's folder",
    "cyclegan --resume {run}": "which this script does not have; resume it with the one that made it",
}


@pytest.mark.parametrize(("arguments", "told"), REFUSED.items())
def test_what_cannot_be_resumed_and_contradictions_are_refused_by_name(arguments, told, run, refusal):
    assert told.format(run=run) in refusal(*arguments.format(run=run).split())


def test_an_option_that_says_what_the_run_has_is_no_contradiction(run, outcome):
    _, printed, _ = outcome("gan_detach", *f"--resume {run} --lr 0.003 --model mlp --steps 3 --betas 0 0.9".split())
    assert printed.startswith("Done: 3 steps.")


def test_a_run_on_a_folder_goes_on_from_elsewhere_and_where_the_folder_was_moved_to(tmp_path, monkeypatch, refusal):
    images = make_images(tmp_path / "here" / "images", 6)
    monkeypatch.chdir(tmp_path / "here")
    call("gan_detach", *TINY, "--dataset", "images", "--steps", 2, "--runs-dir", tmp_path / "runs")
    (run,) = (tmp_path / "runs").glob("gan_detach/*")
    monkeypatch.chdir(tmp_path)
    resume(run, "--steps", 3)

    images.rename(tmp_path / "moved")
    assert f"--dataset '{images}'" in refusal("gan_detach", "--resume", run, "--steps", 4)
    resume(run, "--steps", 4, "--dataset", "moved")
    resume(run, "--steps", 5)
    assert (load(run)["step"], load(run)["options"]["dataset"]) == (5, str(tmp_path / "moved"))

    other = make_images(tmp_path / "other", 5)
    line = refusal("gan_detach", "--resume", run, "--steps", 6, "--dataset", other)
    assert f"--resume {run}: the data_shapes are [[5, 1, 8, 8]], but were [[6, 1, 8, 8]]; use the same images" in line
    line = refusal("gan_detach", "--resume", run, "--steps", 6, "--dataset", "mnist5k")
    assert f"--dataset=mnist5k: the run {run} has --dataset={tmp_path / 'moved'}; leave it out" in line
    assert load(run)["step"] == 5


def test_a_run_of_a_machine_with_another_device_goes_on_here(run, refusal):
    change(run, lambda c: c["options"].update(device="cuda:99"))
    assert "--device cuda:99: cannot be used on this machine" in refusal("gan_detach", "--resume", run, "--steps", 4)
    resume(run, "--steps", 4, "--device", "cpu")
    assert load(run)["options"]["device"] == "cpu"
