"""One process trains a run: a second is refused in one line, and a killed one leaves no lock behind."""

from functools import partial

from processes import wait_until
from test_resume import MLP, assert_same, finish, resume, start, train, weights

from common.run import Run

MLP_OF_4 = f"{MLP} --steps 4"


def waiting(folder):
    """Have this process say in `folder` that it has made a step, and wait there until it may go on."""
    log = Run.log

    def waiting_log(*arguments):
        (folder / "waits").touch()
        wait_until((folder / "go").exists)
        log(*arguments)

    Run.log = waiting_log


def contents(run):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.rglob("*")}


def test_a_run_that_another_process_trains_is_refused_in_one_line_and_left_alone(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    whole, run = train("gan_detach", f"{MLP} --steps 9", tmp_path / "whole"), train("gan_detach", MLP_OF_4, ours)
    first = resume("gan_detach", ours, "--steps 9", partial(waiting, tmp_path))
    wait_until((tmp_path / "waits").exists)
    before = contents(run)
    finish(start("gan_detach", f"--resume {run} --steps 9", theirs), theirs, 2)
    line = f"error: {run}: another process is training this run; wait for it, or end it first\n"
    assert (theirs / "log").read_text() == line
    assert contents(run) == before
    (tmp_path / "go").touch()
    finish(first, ours)
    assert_same(weights(run), weights(whole))


def test_where_there_can_be_no_lock_a_run_is_resumed_without(tmp_path):
    run = train("gan_detach", MLP_OF_4, tmp_path)
    (run / ".lock").unlink()
    (run / ".lock").mkdir()  # so that opening it fails, as on a file system that has no locks
    finish(resume("gan_detach", tmp_path, "--steps 9"), tmp_path)
    assert weights(run)[".step"] == 9
