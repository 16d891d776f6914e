"""A folder too big for memory is streamed: the same batches, read by threads that end with the run."""

import shutil
import threading
from itertools import islice

import numpy as np
import pytest
import torch
from PIL import Image

from common import image_files
from common.data import batch_order, batches, load_images, seed_for
from common.image_files import StreamedImages

COUNT = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Noise in files of several formats and sizes, every third one greyscale, one of them of 16 bits."""
    folder = tmp_path_factory.mktemp("images")
    noise = np.random.default_rng(0)
    for number in range(COUNT):
        shape = (20 + number % 7, 30) if number % 3 == 1 else (30, 20 + number % 7, 3)
        image = Image.fromarray(noise.integers(0, 256, shape, dtype=np.uint16 if number == 4 else np.uint8))
        image.save(folder / f"{number:02}.{'jpg' if number % 2 else 'png'}")
    return folder


def stream(folder, monkeypatch):
    monkeypatch.setattr(image_files, "MEMORY_LIMIT", 0)
    return load_images(str(folder), 16)


def test_a_folder_is_streamed_when_it_is_over_the_limit(folder, monkeypatch):
    monkeypatch.setattr(image_files, "MEMORY_LIMIT", COUNT * 3 * 16 * 16)
    loaded = load_images(str(folder), 16)
    monkeypatch.setattr(image_files, "MEMORY_LIMIT", COUNT * 3 * 16 * 16 - 1)
    streamed = load_images(str(folder), 16)
    assert isinstance(loaded, torch.Tensor)
    assert isinstance(streamed, StreamedImages)
    assert streamed.shape == loaded.shape == (COUNT, 3, 16, 16)


@pytest.mark.parametrize("first_step", [0, 1, 7])
def test_the_batches_are_those_of_images_in_memory_from_any_step_on(folder, monkeypatch, first_step):
    expected = islice(batches(load_images(str(folder), 16), 15, 3), first_step, first_step + 7)
    streamed = islice(batches(stream(folder, monkeypatch), 15, 3, first_step), 7)
    assert all(a.equal(b) for a, b in zip(expected, streamed, strict=True))


def test_a_file_is_opened_for_its_header_and_each_use_and_one_batch_starts_no_threads(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(Image, "open", lambda path, whole=Image.open: opened.append(path) or whole(path))
    paths = image_files.image_paths(folder)
    load_images(str(folder), 16)
    assert sorted(opened) == sorted(2 * paths)
    found = batches(stream(folder, monkeypatch), 8, 0, rows=slice(2, 6))
    assert sorted(opened) == sorted(3 * paths)
    next(found)
    assert len(opened) == 3 * COUNT + 4
    before = threading.active_count()
    next(found)
    assert 1 <= threading.active_count() - before <= 4
    found.close()
    assert threading.active_count() == before


def test_an_image_that_goes_bad_ends_the_run_by_name_and_keeps_its_checkpoint(folder, tmp_path, monkeypatch, outcome):
    images, batch = shutil.copytree(folder, tmp_path / "images"), 20
    order = batch_order(COUNT, batch, seed_for(0, 0))
    seen = {*next(batch_order(COUNT, 64, 0)).tolist(), *next(order).tolist(), *next(order).tolist()}
    bad = sorted(images.iterdir())[min(set(next(order).tolist()) - seen)]  # so that a thread meets it for step 3
    png = (images / "00.png").read_bytes()
    bad.write_bytes(png[:60] + bytes(len(png) - 72) + png[-12:])  # neither its header nor its end shows it

    monkeypatch.setattr(image_files, "MEMORY_LIMIT", 0)
    sizes = f"--image-size 8 --model mlp --batch-size {batch} --steps 6 --checkpoint-every 2 --device cpu"
    status, _, printed = outcome("gan_detach", "--dataset", images, *sizes.split(), "--runs-dir", tmp_path / "runs")
    assert status == 2
    line = printed.splitlines()[-1]
    assert line.startswith(f"error: {bad} cannot be read as an image; mend or replace it: ")
    (path,) = (tmp_path / "runs").glob("gan_detach/*/checkpoint.pt")
    assert torch.load(path, weights_only=True)["step"] == 2


def test_a_slice_of_a_tensor_and_of_a_stream_is_used_alike(folder, monkeypatch):
    whole, streamed = load_images(str(folder), 16), stream(folder, monkeypatch)
    assert len(streamed[:-3]) == COUNT - 3
    assert next(batches(streamed[:-3], 5, 0)).equal(next(batches(whole[:-3], 5, 0)))
    assert streamed[torch.tensor([4, 0, 2])].equal(whole[[4, 0, 2]])
