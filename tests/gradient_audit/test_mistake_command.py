"""`python -m gradient_audit --error`, `--mistake` and `--list`, as a user types them."""

import pytest
from helpers import ROOT
from processes import program, python

from gradient_audit.mistakes import load, match, names, observe

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 65, in <module>
    g_loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation:
[torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1 instead.
"""


def command(*arguments, given=None):
    return python("-m", "gradient_audit", *arguments, folder=ROOT, given=given)


def test_a_name_shows_both_forms_what_they_did_why_and_the_cure():
    done = command("--mistake", "no-zero-grad")
    assert done.returncode == 0
    for part in ("for _ in range(3):", "returns 6, -0.2", "returns 2, 0.4", "  why   backward() adds", "  cure  "):
        assert part in done.stdout


def test_an_error_names_the_mistakes_that_fit_and_shows_the_likeliest_with_the_message_raised_here():
    done = command("--error", "-", given=TRACEBACK)
    assert done.returncode == 0
    fitting = [mistake.name for mistake in match(TRACEBACK)]
    assert [line.split()[0] for line in done.stdout.splitlines()[1 : len(fitting) + 1]] == fitting
    assert "\nstep-between-backwards\n" in done.stdout
    assert observe(load("step-between-backwards").wrong).message[:100] in " ".join(done.stdout.split())


def test_list_names_every_mistake_under_its_kind():
    lines = command("--list").stdout.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(names())
    kinds = [line.split(":")[0] for line in lines if line and not line.startswith(" ")]
    assert kinds == ["Errors", "Errors that are described, not run here", "Silent"]


def test_a_mistake_that_is_not_run_says_so_and_shows_the_message():
    out = command("--mistake", "ddp-batch-norm-twice").stdout
    assert "not run here: " in out
    assert "... modified by an inplace operation ..." in out
    assert "def wrong" not in out


def test_a_form_with_a_process_group_says_what_its_helpers_are():
    out = command("--mistake", "ddp-retain-graph").stdout
    assert "one_rank: Make this process" in out
    assert "one_weight_gan: Return G(x) = 0.5 x" in out


def test_it_is_admitted_when_no_mistake_fits():
    done = command("--error", "CUDA out of memory")
    assert done.returncode == 1
    assert done.stdout.startswith("No mistake")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mistake", "second-backwards"], ["--mistake", "second-backward"]),
        (["--mistake", "qqq"], ["--mistake", "--list"]),
        (["--list", "--error", "x"], ["--list", "--error", "one of"]),
        ([], ["SCRIPT", "--error"]),
    ],
)
def test_bad_input_gives_one_line_that_says_what_to_do_and_status_2(arguments, words):
    done = command(*arguments)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert all(word in line for word in words)


def test_a_reader_that_leaves_early_gets_no_traceback():
    with program("-m", "gradient_audit", "--list", cwd=ROOT) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""
        assert process.wait() in (0, 128 + 13)  # SIGPIPE
