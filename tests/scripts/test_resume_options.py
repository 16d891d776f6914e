"""Which options a run is resumed with: its own, and those that say where it goes on and how long."""

import shutil

import pytest
import torch
from helpers import call, change, load
from PIL import Image

from common.options import GanOptions

TINY = ["--model", "mlp", "--image-size", "8", "--batch-size", "4", "--device", "cpu", "--checkpoint-every", "2"]


def resume(run, *arguments):
    call("gan_detach", "--resume", run, *arguments)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")


CONTRADICTIONS = {
    "--lr=0.1": "--lr=0.002; leave it out",
    "--betas 0.5 0.9": "--betas 0.0 0.999; leave it out",
    "--dataset=mnist": "--dataset=mnist5k; leave it out",
    "--steps=2": "3, which can only be raised",
}


@pytest.mark.parametrize(("arguments", "told"), CONTRADICTIONS.items())
def test_an_option_that_contradicts_the_run_is_refused_with_both_values(arguments, told, run, refusal):
    assert f"{arguments}: the run {run} has {told}" in refusal("gan_detach", "--resume", run, *arguments.split())


def test_an_option_that_says_what_the_run_has_is_no_contradiction(run, capsys):
    resume(run, *["--lr", "0.002", "--model", "mlp", "--steps", "3", "--image-size", "8", "--betas", "0", "0.999"])
    assert capsys.readouterr().out.startswith("Done: 3 steps.")


def test_what_cannot_be_resumed_is_named(run, tmp_path, refusal):
    assert "made by gan_detach.py" in refusal("cyclegan", "--resume", run)
    assert f"{tmp_path / 'nowhere'}: not found" in refusal("gan_detach", "--resume", tmp_path / "nowhere")
    assert "checkpoint.pt: not found" in refusal("gan_detach", "--resume", tmp_path)
    assert "name the run's folder" in refusal("gan_detach", "--resume", run / "checkpoint.pt")


def folder_of_images(folder, count=6):
    folder.mkdir(parents=True)
    for number in range(count):
        Image.new("L", (8, 8), 40 * number).save(folder / f"{number}.png")
    return folder


def train_on(dataset, tmp_path):
    """Train two steps on a folder named on the command line; return the run."""
    call("gan_detach", *TINY, "--dataset", dataset, "--steps", 2, "--runs-dir", tmp_path / "runs")
    (run,) = (tmp_path / "runs").glob("gan_detach/*")
    return run


def test_a_run_on_a_relative_dataset_goes_on_from_another_folder(tmp_path, monkeypatch):
    folder_of_images(tmp_path / "here" / "images")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = train_on("images", tmp_path)
    monkeypatch.chdir(tmp_path / "elsewhere")
    resume(run, "--steps", 3)
    assert load(run)["step"] == 3


def test_a_run_whose_dataset_was_moved_is_told_where_it_is_once(tmp_path, refusal):
    images = folder_of_images(tmp_path / "images")
    run = train_on(images, tmp_path)
    images.rename(tmp_path / "moved")
    assert f"--dataset '{images}'" in refusal("gan_detach", "--resume", run, "--steps", 3)
    resume(run, "--steps", 3, "--dataset", tmp_path / "moved")
    resume(run, "--steps", 4)
    assert load(run)["step"] == 4
    assert load(run)["options"]["dataset"] == str(tmp_path / "moved")


def test_a_folder_of_other_images_is_refused(tmp_path, refusal):
    run = train_on(folder_of_images(tmp_path / "images"), tmp_path)
    other = folder_of_images(tmp_path / "other", count=5)
    line = refusal("gan_detach", "--resume", run, "--steps", 3, "--dataset", other)
    assert f"--resume {run}: the data_shapes are [[5, 1, 8, 8]], but were [[6, 1, 8, 8]]; use the same images" in line
    line = refusal("gan_detach", "--resume", run, "--steps", 3, "--dataset", "mnist5k")
    assert f"--dataset=mnist5k: the run {run} has --dataset={tmp_path / 'images'}; leave it out" in line
    assert load(run)["step"] == 2


def test_a_run_of_a_machine_with_another_device_goes_on_here(run, refusal):
    change(run, lambda c: c["options"].update(device="cuda:99"))
    assert "--device cuda:99: cannot be used on this machine" in refusal("gan_detach", "--resume", run, "--steps", 4)
    resume(run, "--steps", 4, "--device", "cpu")
    assert load(run)["options"]["device"] == "cpu"


def test_compilation_is_switched_on_and_off_when_resuming(run, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    resume(run, "--steps", 4, "--compile")
    assert len(compiled) == 2
    resume(run, "--steps", 5)  # as it was
    resume(run, "--steps", 6, "--compile")  # said again
    assert len(compiled) == 6
    resume(run, "--steps", 7, "--no-compile")
    assert len(compiled) == 6
    assert load(run)["options"]["compile"] is False


@pytest.mark.parametrize("arguments", [[], ["--ema", "0.5"]])
def test_an_option_that_the_script_has_got_since_takes_its_default_or_what_is_given(arguments, run):
    change(run, lambda c: c["options"].pop("ema"))
    resume(run, "--steps", 4, *arguments)
    ema = float(arguments[1]) if arguments else GanOptions().ema
    assert load(run)["options"]["ema"] == ema


def test_an_optimizer_goes_on_as_the_script_sets_it_up_and_with_the_run_s_rate(run):
    """A run of before the script, or PyTorch, changed how Adam is computed; a newer PyTorch knows more settings."""
    settings = load(run)["optimizer_g"]["param_groups"][0]

    def older(checkpoint):
        (group,) = checkpoint["optimizer_g"]["param_groups"]
        group |= {"fused": None, "foreach": True, "lr": 0.125, "unknown_setting_of_a_newer_pytorch": 3}
        group.pop("decoupled_weight_decay", None)

    change(run, older)
    resume(run, "--steps", 4)
    group = load(run)["optimizer_g"]["param_groups"][0]
    assert group == group | settings | {"lr": 0.125}
