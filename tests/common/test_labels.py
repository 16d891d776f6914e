"""Labels belong to their images: one data set yields both, from any step and for any rank."""

import os
from itertools import islice

import numpy as np
import pytest
import torch
from helpers import SMALL, call, steps_of
from PIL import Image

from common.conditional import LabeledImages, load_labeled_images
from common.data import batches, load_images
from common.errors import BadInput

COLOURS = {"7": (0, 0, 250), "all": (0, 250, 0), "caf\udce9": (250, 0, 0)}  # a name that is no UTF-8
CLASSES = "7", "all", r"caf\xe9"
PAIR = LabeledImages(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 1, 0]), ("a", "b"))


@pytest.fixture
def folder(tmp_path):
    """A folder for each colour, of more and fewer images, some of them deeper; every image has its class's colour."""
    for number, (name, colour) in enumerate(COLOURS.items()):
        for index in range(5 + 2 * number):
            path = tmp_path / "data" / name / ("deep" if index % 2 else "") / f"{9 - index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (9, 9), colour).save(path)
    return tmp_path / "data"


def labels_by_colour(images):
    """The classes that the colours of images (N, 3, H, W) tell, int64 (N,)."""
    return torch.tensor([2, 1, 0])[images[:, :, 4, 4].argmax(1)]


def test_every_image_has_the_class_of_its_folder_in_every_batch_also_if_the_folder_grows(folder, monkeypatch):
    def walk(*place, whole=os.walk, **options):
        yield from whole(*place, **options)
        (folder / "7" / "0.png").symlink_to(folder / "7" / "9.png")  # once it is listed

    expected = list(islice(batches(load_images(str(folder), 8), 4, seed=3), 12))  # two epochs and more
    monkeypatch.setattr(os, "walk", walk)
    data = load_labeled_images(str(folder), 8)
    assert data.classes == CLASSES
    assert data.images.shape == (21, 3, 8, 8)
    for start, rows in ((0, slice(None)), (5, slice(1, 3))):
        for number, (real, labels) in zip(range(start, 12), batches(data, 4, 3, start, rows), strict=False):
            assert real.equal(expected[number][rows])
            assert labels.equal(labels_by_colour(real))


def test_images_without_labels_are_refused_by_the_script_that_needs_them(folder, refusal):
    Image.new("L", (9, 9)).save(folder / "stray.png")
    command = ["gan_conditional", "--device", "cpu", "--runs-dir", folder.parent / "runs", "--dataset"]
    assert f"error: --dataset {folder}: stray.png has no class" in refusal(*command, folder)
    (folder / "empty").mkdir()
    (folder / "stray.png").unlink()
    assert f"error: --dataset {folder}: no image is in empty; remove what is no class" in refusal(*command, folder)
    labels = PAIR.labels
    wrong = {"4 images have 3 labels": labels[:3], "from 0 to 1": 2 * labels, "int64": labels.float()}
    for message, other in wrong.items():
        with pytest.raises(BadInput, match=message):
            LabeledImages(PAIR.images, other, PAIR.classes)


def test_a_class_of_which_all_images_would_be_held_out_is_refused_before_an_image_is_read(folder, refusal):
    for index in range(500):
        (folder / "7" / f"many{index}.png").touch()  # which cannot be read
    for name, alone in (("rare", "6.png"), ("once", "29.png")):
        (folder / name).mkdir()
        (folder / name / alone).touch()
    command = ["gan_conditional", "--device", "cpu", "--runs-dir", folder.parent / "runs", "--dataset", folder]
    line = f"error: --dataset {folder}: the held-out tenth has all of once, rare; take --no-hold-out"
    assert refusal(*command) == line
    assert "cannot be read as an image" in refusal(*command, "--no-hold-out")


def test_the_classes_are_counted_before_the_first_step_and_a_command_holds_for_a_folder_with_a_space(folder, outcome):
    runs = folder.parent / "my runs"
    _, out, _ = outcome("gan_conditional", *SMALL, "--steps", 1, "--dataset", folder, "--runs-dir", runs)
    assert out.startswith("Trains on 21 images of 3x8x8 in 3 classes with --lr=")
    assert f"sample.py '{next(runs.glob('*/*'))}' (" in out


def test_a_run_yields_images_and_labels_of_each_data_set(tmp_path):
    step, real, labels, others = next(steps_of(tmp_path, PAIR, PAIR.images, batch_size=3))
    assert (step, real.shape, labels.shape, others.shape) == (1, (3, 1, 8, 8), (3,), (3, 1, 8, 8))
    assert (real.dtype, labels.dtype) == (torch.float32, torch.int64)


def test_a_class_is_sampled_by_its_name_and_a_run_resumes_with_the_same_labels_and_classes_only(
    folder, finished, tmp_path, outcome, refusal
):
    call("gan_conditional", "--dataset", folder, *SMALL, "--steps", 1, "--runs-dir", tmp_path / "runs")
    (run,) = (tmp_path / "runs" / "gan_conditional").iterdir()

    def sampled(*arguments):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.npz"
        call("sample", run, *arguments, "--output", output)
        return np.load(output)

    every = sampled("--count", 6)
    assert every["labels"].tolist() == [0, 1, 2] * 2
    for number, name in enumerate(CLASSES):
        one = sampled("--class", name, "--count", 2)
        assert one["labels"].tolist() == [number] * 2
        assert np.array_equal(one["images"], every["images"][[number, number + 3]])  # the same noise along a row
    assert sampled()["images"].shape == (24, 3, 8, 8)
    assert "--class pink: " in (line := refusal("sample", run, "--class", "pink"))
    assert r"has the classes 7, all, caf\xe9; name one" in line
    assert "has no classes; leave it out" in refusal("sample", finished, "--class", "7")
    assert "note:" not in outcome("gan_conditional", "--resume", run, "--steps", 2)[1]
    one, other = (folder / name / "9.png" for name in ("7", "all"))
    one.write_bytes(other.read_bytes())
    assert "note: as many images as before, but not" in outcome("gan_conditional", "--resume", run, "--steps", 3)[1]
    one.rename(folder / "all" / "moved.png")
    assert "the label_checksums are [" in refusal("gan_conditional", "--resume", run, "--steps", 4)
    (folder / "7").rename(folder / "8")
    assert "the classes are [[" in refusal("gan_conditional", "--resume", run, "--steps", 4)
