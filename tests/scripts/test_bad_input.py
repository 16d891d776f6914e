"""Bad input ends in one line that names the option or file and says what to do, status 2, and nothing left behind."""

import shlex
import struct

import pytest
from helpers import SMALL, call, make_images, saved

from common import data
from common.errors import BadInput, one_line
from common.launch import open_run
from common.options import GanOptions
from scripts.tools.finished_run import load_network

BAD_OPTIONS = {  # one of each kind
    "gan_detach --dataset no/such/folder": "'no/such/folder': neither a folder nor the name",
    "gan_detach --dataset ''": "'': neither a folder nor the name",  # not the current folder
    "cyclegan --dataset ''": "'': neither a folder nor the name",
    "gan_detach --image-size 30": "--image-size: conv takes",
    "gan_detach --batch-size many": "--batch-size",
    "gan_detach --batch-size 4001": "--batch-size 4001: there are 4000 images; take so many or fewer",
    "gan_detach --lr nan": "--lr=nan: must be from 1e-12 to 1000000",
    "gan_detach --seed 4294967296": "--seed=4294967296: must be from 0 to 4294967295",
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


DAMAGED = {
    "nothing": b"",
    "the first half": struct.pack(">4I", 0x803, 3, 28, 28) + bytes(999),
    "another file": b"<html>" * 999,
    "no images": struct.pack(">4I", 0x803, 0, 28, 28),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_of_mnist_are_told_in_one_line(damage, tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(data, "DOWNLOADS", tmp_path)
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    count = 0 if damage == "no images" else 3
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(DAMAGED[damage])
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + bytes(count))
    line = refusal("gan_conditional", "--dataset", "mnist", "--runs-dir", tmp_path / "runs")
    assert f"error: --dataset mnist: cannot be downloaded into {tmp_path}, or is damaged there: delete it" in line


@pytest.fixture
def unread(monkeypatch):
    """Images that may not be read."""
    monkeypatch.setattr("scripts.gan_detach.load_images", lambda *_: pytest.fail("images were read"))


@pytest.mark.parametrize("name", ["file", "link", "caf\udce9"])
def test_a_runs_folder_that_cannot_be_written_is_named_before_images_are_read(name, tmp_path, unread, refusal):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    line = refusal("gan_detach", "--model", "mlp", "--runs-dir", tmp_path / name)
    assert one_line(f"--runs-dir: {tmp_path / name}") in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_folder_of_many_classes_of_few_images_trains(tmp_path):
    for name in range(12):
        make_images(tmp_path / "images" / str(name), 6)  # fewer than the grid of 8 to a class has
    call("gan_conditional", *SMALL, "--steps", 2, "--dataset", tmp_path / "images", "--runs-dir", tmp_path / "runs")
    assert saved(tmp_path / "runs")["step"] == 2


def test_an_address_in_the_place_of_a_folder_is_refused(unread, refusal):
    assert "--runs-dir=s3:/bucket/runs: is an address" in refusal("gan_detach", "--runs-dir", "s3://bucket/runs")


def test_runs_inside_of_the_folder_of_images_are_refused(tmp_path, refusal):
    make_images(tmp_path / "images", 3)
    (tmp_path / "link").symlink_to(tmp_path / "images")
    for images in (tmp_path / "images", tmp_path / "link", tmp_path / "images" / "runs" / ".."):
        (tmp_path / "images" / "runs").mkdir(exist_ok=True)
        line = refusal("gan_detach", "--dataset", images, "--runs-dir", tmp_path / "images" / "runs")
        assert "is in --dataset, which would get its samples" in line
    options = GanOptions(dataset=str(tmp_path), runs_dir=tmp_path / "runs", device="cpu")
    with pytest.raises(BadInput, match="is in --dataset"), open_run("gan_detach.py", options):
        pass


def test_a_session_that_would_write_over_a_run_and_weights_of_another_name_are_refused(tmp_path):
    options = GanOptions(resume=tmp_path, device="cpu")
    with pytest.raises(BadInput, match="only the command line continues a run"), open_run("gan_detach.py", options):
        pass
    with pytest.raises(BadInput, match="weights must be 'average' or 'last', not 'ema'"):
        load_network({}, tmp_path, "generator", "ema", dict, "gan_detach.py")


@pytest.mark.parametrize("name", ["x" * 250, "a/b", "caf\udce9"])
def test_a_name_that_no_folder_can_have_is_refused_by_name_before_images_are_read(name, tmp_path, unread, refusal):
    line = refusal("gan_detach", "--runs-dir", tmp_path / "runs", "--name", name)
    assert f"error: --name={one_line(name)}: cannot be in the name" in line
    assert not [*tmp_path.iterdir()]


def test_sample_refuses_bad_outputs(tmp_path, refusal):
    assert "images.jpg" in refusal("sample", tmp_path, "--output", "images.jpg")
    assert "there is no folder nowhere" in refusal("sample", tmp_path, "--output", "nowhere/grid.png")
