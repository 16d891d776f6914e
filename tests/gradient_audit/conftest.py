"""The command line of the audit in this process, and a script for it."""

import io
import sys
from subprocess import CompletedProcess

import pytest

from gradient_audit.__main__ import main


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function that does here what `forked(RUN_AUDIT, ...)` does in a process of its own.

    given: the bytes on standard input; None if that is closed.
    """

    def command(*arguments, given=b""):
        monkeypatch.setenv("GRADIENT_AUDIT", "")
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        monkeypatch.setattr(sys, "argv", ["gradient_audit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", None if given is None else io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        monkeypatch.setattr(sys, "stdout", sys.stdout)
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        return CompletedProcess(arguments, status, *capsys.readouterr())

    return command


@pytest.fixture
def refusal(command):
    """Return a function that returns the line with which the audit refuses a command line."""

    def refusal(*arguments, **options):
        done = command(*arguments, **options)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        return done.stderr

    return refusal


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a script and returns its path."""

    def write(text):
        (tmp_path / "train.py").write_text(text)
        return tmp_path / "train.py"

    return write
