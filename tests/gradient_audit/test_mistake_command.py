"""`python -m gradient_audit` with `--error`, `--mistake`, `--list` or bad input, in this process."""

import io
import sys

import pytest

from gradient_audit.__main__ import main
from gradient_audit.mistakes import load, match, names, observe

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 65, in <module>
    g_loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation:
[torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1 instead.
"""


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function that does what the command line does, and returns its exit status and both outputs."""

    def command(*arguments, given=""):
        monkeypatch.setattr(sys, "argv", ["gradient_audit", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return command


@pytest.mark.parametrize(
    ("arguments", "status", "parts"),
    [
        (
            ["--mistake", "no-zero-grad"],
            0,
            ["for _ in range(3):", "returns 6, -0.2", "returns 2, 0.4", "  why   backward() adds", "  cure  "],
        ),
        (
            ["--mistake", "ddp-batch-norm-twice"],
            0,
            ["not run here: ", "... modified by an inplace operation ...", "  why   ", "  cure  "],
        ),
        (
            ["--mistake", "ddp-retain-graph"],
            0,
            ["one_rank: Make this process", "one_weight_gan: Return G(x) = 0.5 x"],
        ),
        (["--error", "CUDA out of memory"], 1, ["No mistake"]),
    ],
)
def test_a_mistake_is_shown_with_both_forms_what_they_did_why_and_the_cure(command, arguments, status, parts):
    shown = command(*arguments)
    assert shown[0] == status
    assert all(part in shown[1] for part in parts), shown


def test_an_error_names_the_mistakes_that_fit_and_shows_the_likeliest_with_the_message_raised_here(command):
    status, out, _ = command("--error", "-", given=TRACEBACK)
    assert status == 0
    fitting = [mistake.name for mistake in match(TRACEBACK)]
    assert [line.split()[0] for line in out.splitlines()[1 : len(fitting) + 1]] == fitting
    assert "\nstep-between-backwards\n" in out
    assert observe(load("step-between-backwards").wrong).message[:100] in " ".join(out.split())


def test_list_names_every_mistake_under_its_kind(command):
    lines = command("--list")[1].splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(names())
    kinds = [line.split(":")[0] for line in lines if line and not line.startswith(" ")]
    assert kinds == ["Errors", "Errors that are described, not run here", "Silent"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mistake", "second-backwards"], ["--mistake", "second-backward"]),
        (["--mistake", "qqq"], ["--mistake", "--list"]),
        (["--list", "--error", "x"], ["--list", "--error", "one of"]),
        ([], ["SCRIPT", "--error"]),
        (["nothing.py"], ["there is no file nothing.py"]),
        (["--iterations", "0", __file__], ["--iterations"]),
        (["--iterations", "three", __file__], ["--iterations"]),
        (["--output", "report.pdf", __file__], ["must end in"]),
        (["--output", "nowhere/report.md", __file__], ["there is no folder"]),
    ],
)
def test_bad_input_gives_one_line_that_says_what_to_do_and_status_2(command, arguments, words):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert all(word in line for word in words)
