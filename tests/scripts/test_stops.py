"""What stops a run: a loss that is not finite, a full disk, Ctrl-C as it starts; and no closed output does."""

import errno
import itertools
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers import call, load, path_of, saved
from processes import PATIENCE, program

from common.run import Run
from scripts import gan_detach

TINY = "--model mlp --image-size 8 --batch-size 4 --device cpu"


def stop_in_the_middle(arguments, tmp_path, outcome):
    """Train with checkpoints every 4 steps to 1; return the line that it ends with and the run's folder."""
    arguments = [*TINY.split(), *arguments.split(), "--checkpoint-every", 4, "--runs-dir", tmp_path]
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        status, _, errors = outcome("gan_detach", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)  # pytest writes on, perhaps into a larger file
    assert status == 1
    line = errors.splitlines()[-1]
    (run,) = tmp_path.glob("gan_detach/*")
    assert [path.name for path in run.rglob(".*")] == [".lock"]
    assert load(run)["step"] == 4
    return line, run


def nan_as_loss(values, _):
    return values | {"d_loss": values["d_loss"] * float("nan")}


def inf_in_a_weight(values, generator):
    next(generator.parameters()).data.view(-1)[0] = float("inf")
    return values


@pytest.mark.parametrize(("event", "first", "name"), [(nan_as_loss, 5, "d_loss"), (inf_in_a_weight, 8, "generator")])
def test_what_is_not_finite_stops_the_run_at_its_next_checkpoint(event, first, name, tmp_path, monkeypatch, outcome):
    train_step, steps = gan_detach.train_step, itertools.count(1)

    def broken(generator, *given):
        values = train_step(generator, *given)
        return event(values, generator) if next(steps) >= first else values

    monkeypatch.setattr(gan_detach, "train_step", broken)
    line, _ = stop_in_the_middle("--steps 20", tmp_path, outcome)
    assert line == f"error: step 8: {name} is not finite, so no checkpoint is written; try a lower --lr"


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def no_room_for_a_checkpoint(_):
    limit(1_000_000)


def no_room_for_a_curve(run):
    run.board.flush()
    (events,) = run.folder.glob("events*")
    limit(events.stat().st_size + 10)


NO_ROOM = [
    (no_room_for_a_checkpoint, "--steps 20", ": '{run}/checkpoint.pt'"),
    (no_room_for_a_curve, "--steps 7 --log-every 1 --sample-every 1000", ""),
]


@pytest.mark.parametrize(("event", "arguments", "named"), NO_ROOM)
def test_a_full_disk_is_told_in_one_line_and_the_last_checkpoint_stays(
    event, arguments, named, tmp_path, monkeypatch, outcome
):
    def save_once(self, step):
        save(self, step)
        if step == 4:
            event(self)

    save, hook = Run.save, threading.excepthook
    monkeypatch.setattr(Run, "save", save_once)
    line, run = stop_in_the_middle(arguments, tmp_path, outcome)
    assert line == f"error: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}" + named.format(run=run)
    assert threading.excepthook is hook  # and of TensorBoard's thread there is no traceback


def test_ctrl_c_while_the_data_are_loaded_ends_the_process_without_a_word(tmp_path, monkeypatch, outcome):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr(gan_detach, "load_images", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert outcome("gan_detach", *TINY.split(), "--steps", 1, "--runs-dir", tmp_path / "runs") == (130, "", "")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_run_trains_where_it_can_print_nowhere(closed, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, closed, None)  # as Python has it for `>&-`
    call("gan_detach", *TINY.split(), "--steps", 1, "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 1


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
def test_a_full_stdout_is_told_in_one_line_and_the_results_are_whole(script, run, tmp_path):
    arguments = (
        [*TINY.split(), "--steps", 1, "--runs-dir", tmp_path / "runs"]
        if script == "gan_detach"
        else [run, "--device", "cpu"]
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [path_of(script), *arguments]
    with Path("/dev/full").open("w") as file, program(*command, stdout=file, env=environment) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == f"error: stdout: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}"
    assert "Exception ignored" not in errors
    assert saved(tmp_path / "runs")["step"] == 1 if script == "gan_detach" else (run / "samples.png").exists()
