"""A folder too big for memory is streamed: the same batches, from workers that come and go with the run."""

import os
import pickle
import random
import re
import signal
import sys
from itertools import islice
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from processes import PATIENCE, program, wait_until

from common import data
from common.command_line import launch
from common.data import batch_order, batches, load_images, seed_for
from common.streaming import BatchReader, StreamedImages
from scripts import gan_detach

COUNT = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Noise in files of several formats and sizes, every third one greyscale."""
    folder = tmp_path_factory.mktemp("images")
    noise = np.random.default_rng(0)
    for number in range(COUNT):
        shape = (20 + number % 7, 30) if number % 3 == 1 else (30, 20 + number % 7, 3)
        image = Image.fromarray(noise.integers(0, 256, shape, dtype=np.uint8))
        image.save(folder / f"{number:02}.{'jpg' if number % 2 else 'png'}")
    return folder


def stream(folder, monkeypatch):
    monkeypatch.setattr(data, "MEMORY_LIMIT", 0)
    return load_images(str(folder), 16)


def test_a_folder_is_streamed_when_it_is_over_the_limit(folder, monkeypatch):
    monkeypatch.setattr(data, "MEMORY_LIMIT", COUNT * 3 * 16 * 16)
    loaded = load_images(str(folder), 16)
    monkeypatch.setattr(data, "MEMORY_LIMIT", COUNT * 3 * 16 * 16 - 1)
    streamed = load_images(str(folder), 16)
    assert isinstance(loaded, torch.Tensor)
    assert isinstance(streamed, StreamedImages)
    assert streamed.shape == loaded.shape == (COUNT, 3, 16, 16)
    assert len(streamed) == COUNT
    assert streamed.to(torch.device("cpu")) is streamed


@pytest.mark.parametrize("first_step", [0, 1, 7])
def test_the_batches_are_those_of_images_in_memory_from_any_step_on(folder, monkeypatch, first_step):
    expected = islice(batches(load_images(str(folder), 16), 15, 3), first_step, first_step + 7)
    streamed = islice(batches(stream(folder, monkeypatch), 15, 3, first_step), 7)
    assert all(a.equal(b) for a, b in zip(expected, streamed, strict=True))


def test_nothing_is_decoded_at_the_start_and_one_batch_starts_no_workers(folder, monkeypatch):
    fit, seen = ImageOps.fit, []

    def counted(image, size):
        seen.append(size)
        return fit(image, size)

    monkeypatch.setattr(ImageOps, "fit", counted)
    found = batches(stream(folder, monkeypatch), 4, 0)
    assert seen == []
    next(found)
    assert len(seen) == 4
    assert active_children() == []
    next(found)
    assert len(seen) == 4  # in this process
    assert 1 <= len(active_children()) <= 4
    found.close()
    assert active_children() == []


def test_streaming_draws_nothing_from_the_global_generators(folder, monkeypatch):
    torch.manual_seed(0)
    before = torch.get_rng_state(), random.getstate(), pickle.dumps(np.random.get_state())
    list(islice(batches(stream(folder, monkeypatch), 4, 0), 3))
    assert torch.get_rng_state().equal(before[0])
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before[1:]


def test_workers_outlive_the_signals_that_end_a_run_between_steps(folder, monkeypatch):
    found = batches(stream(folder, monkeypatch), 4, 0)
    list(islice(found, 10))  # by now every worker has answered
    for worker in active_children():
        assert os.getpgid(worker.pid) == worker.pid
        os.kill(worker.pid, signal.SIGINT)
    list(islice(found, 10))
    assert all(worker.is_alive() for worker in active_children())


def test_a_worker_gets_how_to_read_but_not_the_paths(folder, monkeypatch):
    images = stream(folder, monkeypatch)
    packed = pickle.dumps(BatchReader(images.read))
    assert len(packed) < 500
    assert pickle.loads(packed)[images.paths[:2]].shape == (2, 3, 16, 16)


def test_an_unreadable_image_ends_the_run_in_one_line_that_names_it(folder, tmp_path, monkeypatch, capsys):
    copies = [tmp_path / "images" / path.name for path in sorted(folder.iterdir())]
    copies[0].parent.mkdir()
    for path in copies:
        path.write_bytes((folder / path.name).read_bytes())
    steps = batch_order(COUNT, 40, seed_for(0, 0))
    shown, first, second = next(batch_order(COUNT, 64, 0)), next(steps), next(steps)
    bad = copies[min(set(second.tolist()) - set(shown.tolist()) - set(first.tolist()))]  # so that a worker meets it
    whole = copies[0].read_bytes()
    bad.write_bytes(whole[:60] + bytes(len(whole) - 72) + whole[-12:])  # which neither its header nor its end shows

    monkeypatch.setattr(data, "MEMORY_LIMIT", 0)
    arguments = f"--dataset {bad.parent} --image-size 28 --model mlp --batch-size 40 --runs-dir {tmp_path / 'runs'}"
    monkeypatch.setattr(sys, "argv", ["gan_detach", *arguments.split()])
    with pytest.raises(SystemExit, match="2"):
        launch(gan_detach.main, gan_detach.GanOptions)
    printed = capsys.readouterr().err
    assert re.fullmatch(rf"error: {bad} cannot be read as an image \(.*\); mend or remove it", last(printed))
    assert "Traceback" not in printed
    assert "DataLoader" not in printed
    assert active_children() == []


def last(text):
    return text.splitlines()[-1]


@pytest.mark.numerics
def test_a_script_trains_on_a_stream_as_on_the_images_in_memory_and_leaves_no_workers(folder, tmp_path, monkeypatch):
    generators = []
    for limit in (data.MEMORY_LIMIT, 0):
        monkeypatch.setattr(data, "MEMORY_LIMIT", limit)
        runs = tmp_path / str(limit)
        gan_detach.main(
            gan_detach.GanOptions(dataset=str(folder), image_size=28, model="mlp", steps=3, batch_size=8, runs_dir=runs)
        )
        (checkpoint,) = runs.glob("gan_detach/*/checkpoint.pt")
        generators.append(torch.load(checkpoint, weights_only=True)["generator"])
        assert active_children() == []
    loaded, streamed = generators
    assert all(loaded[name].equal(streamed[name]) for name in loaded)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_process_group_ends_a_streamed_run_between_steps(number, folder, tmp_path):
    """Ctrl-C in a terminal reaches every process of the group, and so does what ends a job."""
    code = (
        "from common import command_line, data; from scripts import gan_detach; data.MEMORY_LIMIT = 0; "
        "command_line.launch(gan_detach.main, gan_detach.GanOptions)"
    )
    arguments = f"--dataset {folder} --image-size 28 --model mlp --steps 1000000 --sample-every 5 --runs-dir {tmp_path}"
    command = [sys.executable, "-c", code, *arguments.split()]
    with program(command, cwd=Path(__file__).parents[1], start_new_session=True) as process:
        wait_until(lambda: process.poll() is not None or list(tmp_path.glob("*/*/samples/step-000005.png")))
        os.killpg(process.pid, number)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "Interrupted after step" in output
    assert len(list(tmp_path.glob("*/*/checkpoint.pt"))) == 1
