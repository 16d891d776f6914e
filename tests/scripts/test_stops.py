"""What stops a run while it trains: a loss that is not finite, a full disk, a folder that is gone."""

import errno
import os
import resource
import shutil
import threading

import pytest
import torch

from common.training_run import TrainingRun
from scripts import gan_detach

TINY = "--model mlp --image-size 8 --batch-size 4 --device cpu"


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")


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
    assert not list(run.rglob(".*"))
    return line, run


def step_with(monkeypatch, **after):
    """Make what `after` names happen in the train step of that number and in all later ones."""
    train_step, steps = gan_detach.train_step, []

    def broken(*arguments):
        steps.append(None)
        values = train_step(*arguments)
        for event, number in after.items():
            if len(steps) >= number:
                values = EVENTS[event](values, *arguments)
        return values

    monkeypatch.setattr(gan_detach, "train_step", broken)


def inf_in_a_weight(values, generator, *_):
    with torch.no_grad():
        next(generator.parameters()).view(-1)[0] = float("inf")
    return values


EVENTS = {"nan": lambda values, *_: values | {"d_loss": values["d_loss"] * float("nan")}, "inf": inf_in_a_weight}


def saved_step(run):
    return torch.load(run / "checkpoint.pt", weights_only=True)["step"]


def test_a_loss_that_is_not_finite_stops_the_run_at_the_next_log(tmp_path, monkeypatch, outcome):
    step_with(monkeypatch, nan=5)
    line, run = stop_in_the_middle("--steps 20 --log-every 3", tmp_path, outcome)
    assert "error: step 6: d_loss is nan; the last checkpoint, of step 4, is " in line
    assert str(run / "checkpoint.pt") in line
    assert saved_step(run) == 4


def test_no_checkpoint_is_taken_after_a_loss_that_is_not_finite(tmp_path, monkeypatch, outcome):
    step_with(monkeypatch, nan=7)
    line, run = stop_in_the_middle("--steps 20", tmp_path, outcome)
    assert "error: step 8: d_loss is nan; the last checkpoint, of step 4" in line
    assert saved_step(run) == 4


def test_no_checkpoint_is_taken_of_weights_that_are_not_finite(tmp_path, monkeypatch, outcome):
    step_with(monkeypatch, inf=4)
    line, run = stop_in_the_middle("--steps 20", tmp_path, outcome)
    assert line.startswith("error: step 4: generator holds a number that is not finite; ")
    assert "has no checkpoint yet" in line
    assert not (run / "checkpoint.pt").exists()


def after_the_first_checkpoint(monkeypatch, event):
    save = TrainingRun.save

    def saved(self, step):
        save(self, step)
        if step == 4:
            event(self)

    monkeypatch.setattr(TrainingRun, "save", saved)


def limit(size):
    """Let files grow no further than so many bytes: as close to a full disk as a test gets without one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_no_room_for_a_checkpoint_is_told_and_the_old_one_stays_whole(tmp_path, monkeypatch, outcome):
    after_the_first_checkpoint(monkeypatch, lambda run: limit(1_000_000))
    line, run = stop_in_the_middle("--steps 20", tmp_path, outcome)
    told = f"error: {run / 'checkpoint.pt'}: {os.strerror(errno.EFBIG)}; the last checkpoint, of step 4, is "
    assert line.startswith(told)
    assert saved_step(run) == 4


def test_no_room_for_a_curve_is_told_without_the_traceback_of_tensorboards_thread(tmp_path, monkeypatch, outcome):
    def no_more_events(run):
        run.board.flush()
        (events,) = run.folder.glob("events*")
        limit(events.stat().st_size + 10)

    after_the_first_checkpoint(monkeypatch, no_more_events)
    hook = threading.excepthook
    arguments = "--steps 7 --log-every 1 --sample-every 1000"
    line, run = stop_in_the_middle(arguments, tmp_path, outcome)
    assert f"{os.strerror(errno.EFBIG)}; the last checkpoint, of step 4, is " in line
    assert str(run) in line.split(";")[0]
    assert saved_step(run) == 4
    assert threading.excepthook is hook


@pytest.mark.parametrize("what", ["checkpoint.pt", "samples/step-000006.png"])
def test_a_disk_that_is_full_is_told(what, tmp_path, monkeypatch, outcome):
    def full(run):
        monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))

    after_the_first_checkpoint(monkeypatch, full)
    every = 6 if "samples" in what else 1000
    line, run = stop_in_the_middle(f"--steps 20 --sample-every {every}", tmp_path, outcome)
    assert line.startswith(f"error: {run / what}: No space left; the last checkpoint, of step 4, is ")
    assert saved_step(run) == 4


def test_a_folder_that_turns_read_only_is_told_and_the_checkpoint_stays_whole(tmp_path, monkeypatch, outcome):
    def read_only(run):
        run.folder.chmod(0o500)
        if os.geteuid() == 0:  # whom no permission stops
            os.seteuid(65534)

    after_the_first_checkpoint(monkeypatch, read_only)
    user = os.geteuid()
    try:
        arguments = [*TINY.split(), "--steps", 20, "--checkpoint-every", 4, "--runs-dir", tmp_path]
        status, _, errors = outcome("gan_detach", *arguments)
    finally:
        os.seteuid(user)
    (run,) = tmp_path.glob("gan_detach/*")
    assert status == 1
    line = errors.splitlines()[-1]
    assert f"{os.strerror(errno.EACCES)}; the last checkpoint, of step 4, is " in line
    assert saved_step(run) == 4


def test_a_folder_that_is_moved_away_is_told(tmp_path, monkeypatch, outcome):
    after_the_first_checkpoint(monkeypatch, lambda run: run.folder.rename(tmp_path / "moved"))
    arguments = [*TINY.split(), "--steps", 20, "--checkpoint-every", 4, "--runs-dir", tmp_path]
    status, _, errors = outcome("gan_detach", *arguments)
    assert status == 1
    line = errors.splitlines()[-1]
    assert os.strerror(errno.ENOENT) in line
    assert saved_step(tmp_path / "moved") == 4
