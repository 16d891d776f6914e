"""Bad input ends in one line that names the option or file and says what to do, status 2, and nothing left behind."""

import pytest
import torch
from PIL import Image

from common.images import downloads

BAD_OPTIONS = {
    "--dataset no/such/folder": "no/such/folder: neither mnist5k",
    "--dataset mnst5k": "mnst5k: neither mnist5k",
    "--image-size 30": "30",
    "--image-size -28": "--image-size -28",
    "--image-size 0": "--image-size 0",
    "--batch-size 0": "--batch-size 0",
    "--batch-size many": "--batch-size",
    "--steps -1": "--steps -1",
    "--steps 1.5": "--steps",
    "--lr nan": "--lr nan",
    "--lr 0": "--lr 0",
    "--lr inf": "--lr inf",
    "--betas 0.5 1.0": "--betas 0.5 1.0: should be less than 1",
    "--betas 0.5": "--betas",
    "--seed -1": "--seed -1",
    "--log-every 0": "--log-every 0",
    "--sample-every 0": "--sample-every 0",
    "--device cuda:99": "--device cuda:99",
    "--device tpu": "--device tpu",
    "--device meta": "--device meta",
    "--device hpu": "--device hpu",
    "--no-such-option 1": "--no-such-option",
}


@pytest.mark.parametrize(("arguments", "named"), BAD_OPTIONS.items())
@pytest.mark.parametrize("script", ["gan_detach", "cyclegan"])
def test_a_bad_option_is_refused_by_name(script, arguments, named, tmp_path, refusal):
    runs = tmp_path / "runs"
    line = refusal(script, "--steps", 2, "--runs-dir", runs, *arguments.split())
    assert named in line
    assert not runs.exists()


@pytest.mark.parametrize("script", ["gan_detach", "gan_r3"])
@pytest.mark.parametrize("arguments", ["--z-dim 0", "--model gan", "--image-size 60"])
def test_a_gan_refuses_what_its_networks_cannot_be(script, arguments, tmp_path, refusal):
    runs = tmp_path / "runs"
    line = refusal(script, "--steps", 2, "--runs-dir", runs, *arguments.split())
    assert arguments.split()[0] in line
    assert not runs.exists()


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "heavy"])
@pytest.mark.parametrize("script", ["gan_r3", "gan_wgan_gp"])
def test_a_penalty_s_weight_is_finite_and_not_negative(script, value, tmp_path, refusal):
    runs = tmp_path / "runs"
    assert "--penalty-weight" in refusal(script, "--runs-dir", runs, f"--penalty-weight={value}")
    assert not runs.exists()


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "nan"])
@pytest.mark.parametrize(("script", "option"), [("gan_r3", "--penalty-every"), ("gan_wgan_gp", "--critic-steps")])
def test_what_happens_every_so_many_steps_needs_a_step(script, option, value, tmp_path, refusal):
    runs = tmp_path / "runs"
    assert option in refusal(script, "--runs-dir", runs, f"{option}={value}")
    assert not runs.exists()


@pytest.mark.parametrize(
    "arguments", ["--identity-weight -1", "--decay-from 3", "--load-size 30", "--ema 1", "--halvings 4", "--width 0"]
)
def test_cyclegan_refuses_what_its_training_cannot_be(arguments, tmp_path, refusal):
    runs = tmp_path / "runs"
    line = refusal("cyclegan", "--steps", 2, "--runs-dir", runs, *arguments.split())
    assert arguments.split()[0] in line
    assert not runs.exists()


@pytest.mark.parametrize("script", ["gan_detach", "cyclegan"])
def test_an_empty_name_is_not_the_current_folder(script, tmp_path, monkeypatch, refusal):
    for domain in "AB":
        (tmp_path / f"train{domain}").mkdir()
        Image.new("L", (28, 28)).save(tmp_path / f"train{domain}" / "image.png")
    monkeypatch.chdir(tmp_path)
    arguments = ["--dataset", "", "--steps", 1, "--runs-dir", tmp_path / "runs"]
    assert refusal(script, *arguments).startswith("error: --dataset '': neither mnist5k, ")
    assert not (tmp_path / "runs").exists()


def test_a_folder_without_images_is_refused(tmp_path, refusal):
    (tmp_path / "empty").mkdir()
    arguments = ["--dataset", tmp_path / "empty", "--runs-dir", tmp_path / "runs"]
    assert f"{tmp_path / 'empty'}: no images in it" in refusal("gan_detach", *arguments)
    assert not (tmp_path / "runs").exists()


def test_an_unreadable_image_is_refused_by_its_path(tmp_path, refusal):
    Image.new("L", (28, 28)).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_text("not a picture")
    arguments = ["--dataset", tmp_path, "--image-size", 28, "--runs-dir", tmp_path / "runs"]
    assert str(tmp_path / "bad.png") in refusal("gan_detach", *arguments)
    assert not (tmp_path / "runs").exists()


def test_a_refused_download_is_told_with_a_way_out(tmp_path, outcome, monkeypatch):
    monkeypatch.setattr(downloads, "DOWNLOADS", tmp_path / "data")
    monkeypatch.setattr(downloads.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    status, _, errors = outcome("gan_detach", "--dataset", "mnist", "--runs-dir", tmp_path / "runs")
    last = errors.splitlines()[-1]
    assert status == 2
    assert "--dataset mnist:" in last
    assert "--dataset mnist5k ships" in last
    assert list(tmp_path.iterdir()) == []


def test_a_runs_folder_that_cannot_be_written_is_named(tmp_path, refusal):
    (tmp_path / "file").touch()
    arguments = ["--model", "mlp", "--runs-dir", tmp_path / "file"]
    assert f"--runs-dir: {tmp_path / 'file'}" in refusal("gan_detach", *arguments)


@pytest.mark.parametrize("content", [b"", b"random bytes", None])
def test_sample_refuses_what_is_no_checkpoint(content, tmp_path, refusal):
    if content is None:
        torch.save({"a": 1}, tmp_path / "checkpoint.pt")
    else:
        (tmp_path / "checkpoint.pt").write_bytes(content)
    assert "checkpoint.pt: not a checkpoint" in refusal("sample", tmp_path)


def test_sample_refuses_a_missing_run_and_bad_outputs(tmp_path, refusal):
    assert "checkpoint.pt: not found" in refusal("sample", tmp_path)
    assert "images.jpg" in refusal("sample", tmp_path, "--output", "images.jpg")
    output = tmp_path / "missing" / "grid.png"
    assert str(output.parent) in refusal("sample", tmp_path, "--output", output)
    assert "--count 0" in refusal("sample", tmp_path, "--count", 0)
