"""How a process ends that is told to while it starts, and one that can print nowhere."""

import os
import signal
import sys
import time

import pytest
from helpers import call, saved

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
