"""What stops a run while it trains: a loss that is not finite, a full disk, a folder that is gone."""

import errno
import itertools
import os
import resource
import threading

import pytest
import torch
from helpers import load

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


def nan_as_loss(values, *_):
    return values | {"d_loss": values["d_loss"] * float("nan")}


def inf_in_a_weight(values, generator, *_):
    with torch.no_grad():
        next(generator.parameters()).view(-1)[0] = float("inf")
    return values


NOT_FINITE = [
    ("--log-every 3", nan_as_loss, 5, "step 6: d_loss is not finite"),
    ("", nan_as_loss, 7, "step 8: d_loss is not finite"),  # found where the next checkpoint would be written
    ("", inf_in_a_weight, 5, "step 8: generator is not finite"),
]


@pytest.mark.parametrize(("arguments", "event", "first", "told"), NOT_FINITE)
def test_what_is_not_finite_stops_the_run_and_is_in_no_checkpoint(
    arguments, event, first, told, tmp_path, monkeypatch, outcome
):
    train_step, steps = gan_detach.train_step, itertools.count(1)

    def broken(*given):
        values = train_step(*given)
        return event(values, *given) if next(steps) >= first else values

    monkeypatch.setattr(gan_detach, "train_step", broken)
    line, _ = stop_in_the_middle(f"--steps 20 {arguments}", tmp_path, outcome)
    assert line == f"error: {told}, so no checkpoint is written; try a lower --lr"


def after_the_first_checkpoint(monkeypatch, event):
    save = Run.save

    def saved(self, step):
        save(self, step)
        if step == 4:
            event(self)

    monkeypatch.setattr(Run, "save", saved)


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_no_room_for_a_checkpoint_is_told_and_the_old_one_stays_whole(tmp_path, monkeypatch, outcome):
    after_the_first_checkpoint(monkeypatch, lambda run: limit(1_000_000))
    line, run = stop_in_the_middle("--steps 20", tmp_path, outcome)
    assert line == f"error: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}: '{run / 'checkpoint.pt'}'"


def test_no_room_for_a_curve_is_told_without_the_traceback_of_tensorboards_thread(tmp_path, monkeypatch, outcome):
    def no_more_events(run):
        run.board.flush()
        (events,) = run.folder.glob("events*")
        limit(events.stat().st_size + 10)

    after_the_first_checkpoint(monkeypatch, no_more_events)
    hook = threading.excepthook
    arguments = "--steps 7 --log-every 1 --sample-every 1000"
    line, _ = stop_in_the_middle(arguments, tmp_path, outcome)
    assert line == f"error: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}"
    assert threading.excepthook is hook


def test_a_folder_that_is_moved_away_is_told(tmp_path, monkeypatch, outcome):
    after_the_first_checkpoint(monkeypatch, lambda run: run.folder.rename(tmp_path / "moved"))
    arguments = [*TINY.split(), "--steps", 20, "--checkpoint-every", 4, "--runs-dir", tmp_path]
    status, _, errors = outcome("gan_detach", *arguments)
    assert status == 1
    assert os.strerror(errno.ENOENT) in errors.splitlines()[-1]
    assert load(tmp_path / "moved")["step"] == 4
