"""How a process ends that is told to while it starts, and one that can print nowhere."""

import errno
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from helpers import call, path_of, saved
from processes import PATIENCE, program

from scripts import gan_detach

TINY = "--model mlp --image-size 8 --batch-size 4 --steps 1 --device cpu"


def test_ctrl_c_while_the_data_are_loaded_ends_the_process_without_a_word(tmp_path, monkeypatch, outcome):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr(gan_detach, "load_images", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert outcome("gan_detach", *TINY.split(), "--runs-dir", tmp_path / "runs") == (130, "", "")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_run_trains_where_it_can_print_nowhere(closed, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, closed, None)  # as Python has it for `>&-`
    call("gan_detach", *TINY.split(), "--runs-dir", tmp_path)
    assert saved(tmp_path)["step"] == 1


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
def test_a_full_stdout_is_told_in_one_line_and_the_results_are_whole(script, run, tmp_path):
    arguments = [*TINY.split(), "--runs-dir", tmp_path / "runs"] if script == "gan_detach" else [run, "--device", "cpu"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [path_of(script), *arguments]
    with Path("/dev/full").open("w") as file, program(*command, stdout=file, env=environment) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == f"error: stdout: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}"
    assert "Exception ignored" not in errors
    assert saved(tmp_path / "runs")["step"] == 1 if script == "gan_detach" else (run / "samples.png").exists()
