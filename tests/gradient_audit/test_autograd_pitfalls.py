"""The script prints what its entries are and did, and finds the entries behind an error."""

from dataclasses import replace

import pytest
from processes import program, python

from common.pitfalls import PITFALLS, match_error, observe
from scripts.tools import autograd_pitfalls as script

ENTRIES = {pitfall.name: pitfall for pitfall in PITFALLS}

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 65, in <module>
    g_loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation:
[torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1 instead.
"""


def test_a_form_that_behaves_otherwise_is_noticed_and_the_printout_says_so():
    pitfall = ENTRIES["data-edit"]
    for changed in (
        replace(pitfall, wrong=pitfall.right),
        replace(pitfall, right=pitfall.wrong),
        replace(pitfall, wrong=ENTRIES["edit-through-detach"].wrong),
    ):
        assert "does something else here" in script.describe(changed)
    assert "does something else here" not in script.describe(pitfall)


def test_a_name_shows_both_forms_what_they_did_why_and_the_cure(outcome):
    status, out, _ = outcome("autograd_pitfalls", "zero-grad-forgotten")
    assert status == 0
    for part in ("for _ in range(3):", "returns 6, -0.2", "returns 2, 0.4", "  why   backward() adds", "  cure  "):
        assert part in out
    assert outcome("autograd_pitfalls", "zero_grad_forgotten") == (0, out, "")  # underscores will do


def test_the_message_shown_is_the_one_raised_here(outcome):
    _, out, _ = outcome("autograd_pitfalls", "step-between-backwards")
    assert observe(ENTRIES["step-between-backwards"].wrong).message in " ".join(out.split())


def test_list_names_every_entry_under_its_kind_on_a_line_of_80_columns(outcome):
    status, out, _ = outcome("autograd_pitfalls", "--list")
    assert status == 0
    lines = out.splitlines()
    kinds = [lambda pitfall: not pitfall.silent and not pitfall.not_run]
    kinds += [lambda pitfall: pitfall.not_run, lambda pitfall: pitfall.silent]
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        name for kind in kinds for name, pitfall in ENTRIES.items() if kind(pitfall)
    ]
    assert [line.split(":")[0] for line in lines if line and not line.startswith(" ")] == [
        "Errors",
        "Errors that are described, not run here",
        "Silent",
    ]
    assert max(map(len, lines)) <= 80


def test_without_arguments_every_entry_is_shown_and_fits_80_columns(monkeypatch, outcome):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = outcome("autograd_pitfalls")
    assert status == 0
    assert all(f"{name}\n{pitfall.title}\n" in out for name, pitfall in ENTRIES.items())
    assert "does something else here" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_an_entry_that_is_not_run_says_so_and_shows_the_message(outcome):
    status, out, _ = outcome("autograd_pitfalls", "ddp-batch-norm-twice")
    assert status == 0
    assert "not run here: " in out
    assert "... modified by an inplace operation ..." in out
    assert "  wrong" not in out


def test_a_form_with_a_process_group_says_what_its_helpers_are(outcome):
    _, out, _ = outcome("autograd_pitfalls", "ddp-retain-graph")
    assert "one_rank(): Make this process" in out
    assert "one_weight_gan(): G(x) = 0.5 x" in out


def test_an_error_lists_the_entries_that_fit_and_shows_the_best(outcome):
    status, out, _ = outcome("autograd_pitfalls", "--error", TRACEBACK)
    assert status == 0
    names = [pitfall.name for pitfall in match_error(TRACEBACK)]
    assert [line.split()[0] for line in out.splitlines()[1 : len(names) + 1]] == names
    assert "\nstep-between-backwards\n" in out


def test_it_is_admitted_when_no_entry_fits(outcome):
    status, out, _ = outcome("autograd_pitfalls", "--error", "CUDA out of memory")
    assert status == 1
    assert out.startswith("No entry")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["second-backwards"], ["NAME", "second-backward"]),
        (["qqq"], ["NAME", "--list"]),
        (["--error", " "], ["--error", "empty"]),
        (["--list", "--error", "x"], ["--list", "--error", "one of them"]),
    ],
)
def test_bad_input_gives_one_line_that_says_what_to_do_and_status_2(arguments, words, refusal):
    line = refusal("autograd_pitfalls", *arguments)
    assert all(word in line for word in words)


def test_a_traceback_is_read_from_standard_input_in_any_folder(tmp_path):
    done = python(script.__file__, "--error", "-", folder=tmp_path, given=TRACEBACK)
    assert done.returncode == 0, done.stderr
    assert "step-between-backwards" in done.stdout


def test_a_reader_that_leaves_early_gets_no_traceback():
    with program(script.__file__) as process:
        assert process.stdout.readline() == "second-backward\n"
        process.stdout.close()  # as `| head -1` does
        assert process.stderr.read() == ""
        assert process.wait() == 128 + 13  # SIGPIPE
