"""Bad input ends in one line that names the option or file and says what to do, status 2, and nothing left behind."""

import shlex

import pytest

from common import data

BAD_OPTIONS = {  # one of each kind
    "gan_detach --dataset no/such/folder": "--dataset 'no/such/folder': neither mnist5k",
    "gan_detach --dataset ''": "--dataset '': neither mnist5k",  # not the current folder
    "cyclegan --dataset ''": "--dataset '': neither mnist5k",
    "gan_detach --image-size 30": "--image-size: conv takes",
    "gan_detach --batch-size many": "--batch-size",
    "gan_detach --lr nan": "--lr=nan: must be from 1e-12 to 1e+06",
    "gan_detach --device meta": "--device meta",
    "cyclegan --halvings 4": "--halvings: with 4 halvings",
}


@pytest.mark.parametrize(("arguments", "named"), BAD_OPTIONS.items())
def test_a_bad_option_is_refused_by_name(arguments, named, tmp_path, refusal):
    runs = tmp_path / "runs"
    script, *arguments = shlex.split(arguments)
    assert named in refusal(script, "--steps", 2, "--runs-dir", runs, *arguments)
    assert not runs.exists()


def test_a_refused_download_is_told_with_a_way_out(tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(data, "DOWNLOADS", tmp_path / "data")
    monkeypatch.setattr(data.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    line = refusal("gan_detach", "--dataset", "mnist", "--runs-dir", tmp_path / "runs")
    assert line.startswith("error: --dataset mnist: cannot be downloaded into ")
    assert "; mnist5k ships with the repository" in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["file", "link"])
def test_a_runs_folder_that_cannot_be_written_is_named(name, tmp_path, refusal):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    line = refusal("gan_detach", "--model", "mlp", "--runs-dir", tmp_path / name)
    assert f"--runs-dir: {tmp_path / name}" in line


def test_sample_refuses_bad_outputs(tmp_path, refusal):
    assert "images.jpg" in refusal("sample", tmp_path, "--output", "images.jpg")
    assert "there is no folder nowhere" in refusal("sample", tmp_path, "--output", "nowhere/grid.png")
