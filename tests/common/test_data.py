"""The shipped digits, torchvision's data sets, folders of images, and an order that is a function of (seed, step)."""

import hashlib
import pickle
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import write_idx
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torchvision.datasets import CIFAR10

from common import data
from common.conditional import load_labeled_images
from common.data import batch_order, batches, load_dataset, load_images, to_float, to_uint8
from common.errors import BadInput
from common.image_files import training_paths


def test_mnist5k_is_whole_balanced_and_split_without_overlap():
    train, train_labels, classes = load_dataset("mnist5k")
    held_out, held_out_labels, _ = load_dataset("mnist5k", held_out=True)
    assert classes == tuple("0123456789")
    assert train.shape == (4000, 1, 28, 28)
    assert held_out.shape == (1000, 1, 28, 28)
    assert train.dtype == torch.uint8
    assert torch.bincount(train_labels).tolist() == [400] * 10
    assert torch.bincount(held_out_labels).tolist() == [100] * 10
    images = {image.numpy().tobytes() for image in torch.cat([train, held_out])}
    assert len(images) == 5000
    assert hashlib.md5(b"".join(sorted(images))).hexdigest() == "2d8c70bb4ba2b56aa635cbe941f0f6bf"  # of their source
    assert (data.ASSETS / "mnist5k.png").stat().st_size <= 1_000_000


# The start of the MD5 of one picture of each digit from 0 to 9, which were looked at.
SEEN = "f81bff97 ee1a8b0e 84f7ae48 b1b6b5db 3125a8af 2ce86e4d e151a238 2f4c48e4 1810386c 91332fee"


def test_the_label_of_a_shipped_picture_is_the_digit_that_one_sees():
    images, labels, _ = load_dataset("mnist5k")
    sums = [hashlib.md5(image.numpy().tobytes()).hexdigest()[:8] for image in images]
    assert [labels[sums.index(seen)].item() for seen in SEEN.split()] == list(range(10))


def test_batches_are_of_a_tensor_that_is_not_empty():
    for values, told in ((np.zeros((9, 1, 2, 2), np.uint8), "ndarray uint8"), (torch.zeros(0, 2), "float32 .0, 2.")):
        with pytest.raises(BadInput, match=f"data must be a tensor .*{told}"):
            next(batches(values, 4, seed=0))


def test_every_pixel_value_survives_the_way_to_float_and_back():
    values = torch.arange(256, dtype=torch.uint8)
    floats = to_float(values)
    assert floats[[0, 255]].tolist() == [-1, 1]
    assert to_uint8(floats).equal(values)
    assert to_uint8(torch.tensor([-3.0, 3.0])).tolist() == [0, 255]


sizes = st.tuples(st.integers(1, 40), st.integers(1, 100), st.integers(0, 5))


@given(sizes, st.integers(0, 30))
def test_the_order_at_a_step_does_not_depend_on_where_it_was_started(sizes, skip):
    whole = list(islice(batch_order(*sizes), skip + 3))
    resumed = list(islice(batch_order(*sizes, first_step=skip), 3))
    assert all(a.equal(b) for a, b in zip(whole[skip:], resumed, strict=True))


@given(sizes)
def test_every_epoch_holds_every_image_once(sizes):
    count, batch_size, _ = sizes
    order = torch.cat(list(islice(batch_order(*sizes), 3 * count // batch_size + 1)))
    for epoch in order[: len(order) // count * count].view(-1, count):
        assert epoch.sort().values.equal(torch.arange(count))


def test_seeds_and_epochs_give_orders_of_their_own_in_which_batches_come():
    orders = [tuple(next(batch_order(50, 50, seed, step)).tolist()) for seed in range(4) for step in range(4)]
    assert len(set(orders)) == 16
    images = load_images("mnist5k")
    assert next(batches(images, 16, seed=3)).equal(to_float(images[next(batch_order(4000, 16, 3))]))


@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist"])
def test_files_in_the_format_of_mnist_are_read_with_their_labels(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DOWNLOADS", tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    folder, labels = tmp_path / data.TORCHVISION[dataset].__name__ / "raw", [9, 0, 3, 3, 1, 7]
    for name, rows in (("train", slice(4)), ("t10k", slice(4, 6))):
        write_idx(folder, name, pixels[rows], labels[rows])
    for held_out, rows in ((False, slice(4)), (True, slice(4, 6))):
        labeled = load_labeled_images(dataset, held_out=held_out)
        assert labeled.images.equal(torch.from_numpy(pixels[rows, None]))
        assert (labeled.labels.tolist(), len(labeled.classes)) == (labels[rows], 10)
    assert load_images(dataset).equal(torch.from_numpy(pixels[:4, None]))


def test_files_in_the_format_of_cifar10_are_read_with_their_labels(tmp_path, monkeypatch):
    """Five to train on, one to test on. torchvision compares their MD5 with those of the real ones: replaced here."""
    monkeypatch.setattr(data, "DOWNLOADS", tmp_path)
    folder, labels = tmp_path / CIFAR10.base_folder, [*range(10), 0, 9]
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    files = {"batches.meta": {"label_names": [*"abcdefghij"]}}
    for number, name in enumerate([row[0] for row in CIFAR10.train_list + CIFAR10.test_list]):
        rows = slice(2 * number, 2 * number + 2)
        files[name] = {"data": pixels[rows].reshape(2, 3072), "labels": labels[rows]}
    for name, content in files.items():
        (folder / name).write_bytes(pickle.dumps(content))
    meta, *train, test = [[name, hashlib.md5((folder / name).read_bytes()).hexdigest()] for name in files]
    monkeypatch.setattr(CIFAR10, "train_list", train)
    monkeypatch.setattr(CIFAR10, "test_list", [test])
    monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": meta[1]})
    for held_out, rows in ((False, slice(10)), (True, slice(10, 12))):
        labeled = load_labeled_images("cifar10", held_out=held_out)
        assert labeled.images.equal(torch.from_numpy(pixels[rows]))
        assert (labeled.labels.tolist(), labeled.classes) == (labels[rows], tuple("abcdefghij"))
    assert load_images("cifar10").equal(torch.from_numpy(pixels[:10]))


def test_a_tenth_of_a_folder_is_held_out_by_name_wherever_it_lies_unless_it_is_small():
    paths = [f"here/{number}.png" for number in range(1000)]
    rest = training_paths(paths)
    assert 870 < len(rest) < 930
    assert [Path(path).stem for path in training_paths([f"a/b/{number}.jpg" for number in range(1000)])] == [
        Path(path).stem for path in rest
    ]
    assert training_paths(paths[:600]) == [path for path in rest if path in paths[:600]]
    same = [[f"{number}/{name}.png" for number in range(1000)] for name in range(20)]  # of one name each
    for few in (paths[:499], *same):
        assert training_paths(few) == few


def test_it_is_told_if_more_than_a_tenth_is_held_out_as_many_files_have_one_name(capsys):
    views = [f"{number}/{name}.png" for number in range(200) for name in ("front", "left", "right")]
    assert training_paths(views) == [path for path in views if "left" not in path]
    assert "held out by their names: 200 of 600 images, not a tenth" in capsys.readouterr().err
    training_paths([f"{number}.png" for number in range(600)])
    assert capsys.readouterr().err == ""


def test_images_are_cropped_from_the_centre_or_padded_and_turned_upright(tmp_path):
    image, exif = Image.new("L", (60, 20), 100), Image.Exif()
    image.paste(0, (20, 0, 40, 20))
    image.paste(255, (20, 0, 40, 10))
    exif[0x0112] = 6  # the camera was turned: the top of the file is the right of the picture
    image.save(tmp_path / "a.png", exif=exif)
    assert load_images(str(tmp_path), 20).equal(
        torch.tensor([0, 255]).byte().repeat_interleave(10).expand(1, 1, 20, 20)
    )


@pytest.mark.parametrize("sides", [(300, 7), (7, 300)])
def test_an_image_is_refused_of_which_the_square_would_have_nothing(sides, tmp_path):
    Image.new("L", sides).save(tmp_path / "a.png")
    assert load_images(str(tmp_path), 22, "white").unique().tolist() == [0, 255]  # a row, or a column
    with pytest.raises(BadInput, match=f"--fit white would leave nothing of {sides[0]}x{sides[1]} pixels"):
        load_images(str(tmp_path), 21, "white")
    assert load_images(str(tmp_path), 21).unique().tolist() == [0]
