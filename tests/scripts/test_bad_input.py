"""Bad input ends in one line that names the option or file and says what to do, status 2, and nothing left behind."""

import re

import pytest
from PIL import Image

from common import data

BAD_OPTIONS = {  # one of each kind
    "gan_detach --dataset no/such/folder": "--dataset 'no/such/folder': neither mnist5k",
    "gan_detach --image-size 30": "--image-size: conv takes",
    "gan_detach --batch-size many": "--batch-size",
    "gan_detach --lr nan": "--lr=nan: must be from 1e-12 to 1e+06",
    "gan_detach --betas 0.5 1.0": "--betas 0.5 1.0: must be from 0 to 0.999999",
    "gan_detach --device cuda:99": "--device cuda:99",
    "gan_detach --device meta": "--device meta",
    "gan_r3 --penalty-weight -1": "--penalty-weight",
    "gan_r3 --decay-from 3": "--decay-from 3: there are 2 steps",
    "cyclegan --decay-from 3": "--decay-from 3: there are 2 steps",
    "cyclegan --load-size 30": "--load-size 30",
    "cyclegan --halvings 4": "--halvings: with 4 halvings",
}


@pytest.mark.parametrize(("arguments", "named"), BAD_OPTIONS.items())
def test_a_bad_option_is_refused_by_name(arguments, named, tmp_path, refusal):
    runs = tmp_path / "runs"
    script, *arguments = arguments.split()
    assert named in refusal(script, "--steps", 2, "--runs-dir", runs, *arguments)
    assert not runs.exists()


@pytest.mark.parametrize("script", ["gan_detach", "cyclegan"])
def test_an_empty_name_is_not_the_current_folder(script, tmp_path, monkeypatch, refusal):
    for domain in "AB":
        (tmp_path / f"train{domain}").mkdir()
        Image.new("L", (28, 28)).save(tmp_path / f"train{domain}" / "image.png")
    monkeypatch.chdir(tmp_path)
    line = refusal(script, "--dataset", "", "--runs-dir", tmp_path / "runs")
    assert line.startswith("error: --dataset '': neither mnist5k, ")


def test_a_refused_download_is_told_with_a_way_out(tmp_path, outcome, monkeypatch):
    monkeypatch.setattr(data, "DOWNLOADS", tmp_path / "data")
    monkeypatch.setattr(data.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    status, _, errors = outcome("gan_detach", "--dataset", "mnist", "--runs-dir", tmp_path / "runs")
    assert status == 2
    assert re.fullmatch("error: --dataset mnist: .*; mnist5k ships with the repository", errors.splitlines()[-1])
    assert not (tmp_path / "runs").exists()


def test_a_runs_folder_that_cannot_be_written_is_named(tmp_path, refusal):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    for folder in ("file", "link"):
        line = refusal("gan_detach", "--model", "mlp", "--runs-dir", tmp_path / folder)
        assert f"--runs-dir: {tmp_path / folder}" in line


@pytest.mark.parametrize(("arguments", "named"), [("--output images.jpg", "images.jpg"), ("--count 0", "--count=0")])
def test_sample_refuses_bad_outputs(arguments, named, tmp_path, refusal):
    assert named in refusal("sample", tmp_path, *arguments.split())
    assert "there is no folder nowhere" in refusal("sample", tmp_path, "--output", "nowhere/grid.png")
