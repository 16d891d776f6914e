"""The one-weight GAN: what autograd computes is what the formulas say."""

import subprocess
import sys
from itertools import pairwise

import pytest
from common.pitfalls import PITFALLS
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.tools import gradient_walkthrough as walkthrough

pytestmark = pytest.mark.numerics
WAYS = {"one": walkthrough.way_one, "two": walkthrough.way_two, "r1": walkthrough.r1}

START = ("start", None, None, 0.5, 0.7)
D_BACKWARD = ("L_D.backward()", None, 0.35, 0.5, 0.7)
EXPECTED = {  # after, grad G, grad D, weight G, weight D
    "one": [
        START,
        D_BACKWARD,
        ("L_G.backward()", 0.49, 0.35, 0.5, 0.7),
        ("optimizer_g.step()", 0.49, 0.35, 0.01, 0.7),
        ("optimizer_d.step()", 0.49, 0.35, 0.01, 0.35),
    ],
    "two": [
        START,
        D_BACKWARD,
        ("optimizer_d.step()", None, 0.35, 0.5, 0.35),
        ("L_G.backward()", 0.1225, 0.525, 0.5, 0.35),
        ("optimizer_g.step()", 0.1225, 0.525, 0.3775, 0.35),
    ],
    "r1": [
        START,
        D_BACKWARD,
        ("grad(D(x), x)", None, 0.35, 0.5, 0.7),
        ("R1.backward()", None, 1.05, 0.5, 0.7),
        ("optimizer_d.step()", None, 1.05, 0.5, -0.35),
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_gradients_and_weights_after_every_call_are_the_known_ones(way):
    rows = WAYS[way]().rows
    assert [row.after for row in rows] == [after for after, *_ in EXPECTED[way]]
    for row, (_, *expected) in zip(rows, EXPECTED[way], strict=True):
        assert list(row.values) == list(walkthrough.COLUMNS)
        assert list(row.values.values()) == [  # float32, and at most about 1
            None if value is None else pytest.approx(value, abs=5e-7) for value in expected
        ]


def check_by_hand(way):
    """Every number that a call changes has a formula, whose value, and whose numbers as written, are autograd's."""
    for before, row in pairwise(way.rows):
        changed = {column for column, value in row.values.items() if value != before.values[column]}
        assert set(row.by_hand) == changed
        for column, by_hand in row.by_hand.items():
            assert by_hand.value == pytest.approx(row.values[column], rel=1e-4, abs=1e-6)  # in float32
            written = eval(by_hand.numbers.replace("^", "**"))
            assert written == pytest.approx(by_hand.value, rel=1e-3, abs=1e-4)  # written to six digits


@pytest.mark.parametrize("way", WAYS)
def test_the_formulas_give_what_autograd_gives(way):
    check_by_hand(WAYS[way]())


numbers = st.floats(0.5, 1.0, width=16)


@settings(max_examples=20, deadline=None)
@given(x=numbers, theta_g=numbers, theta_d=numbers, learning_rate=st.floats(0.125, 0.25, width=16))
def test_the_formulas_hold_for_any_numbers_so_no_result_is_typed_in(x, theta_g, theta_d, learning_rate):
    constants = {"X": x, "THETA_G": theta_g, "THETA_D": theta_d, "LEARNING_RATE": learning_rate}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(walkthrough, name, value)
        for way in WAYS.values():
            check_by_hand(way())


def test_the_printout_fits_a_terminal_of_80_columns_and_is_plain_ascii(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    walkthrough.main(walkthrough.Options())
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 80
    for number in ("0.0100", "0.1225", "0.3500", "0.3775", "0.4900", "0.5250", "0.7000", "1.0500"):
        assert number in printed


COMMAND = [sys.executable, walkthrough.__file__]


def test_the_pitfalls_that_the_text_names_exist():
    named = {word.strip(".:;") for way in WAYS.values() for word in way().lesson.split() if "-" in word}
    assert named == {"both-backward", "step-between-backwards", "silent-penalty"}
    assert named <= {pitfall.name for pitfall in PITFALLS}


def test_a_wrong_option_is_refused_in_one_line_and_help_is_given(tmp_path):
    done = subprocess.run([*COMMAND, "--lr", "2"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--lr" in done.stderr
    done = subprocess.run([*COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "one-weight GAN" in done.stdout


def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path):
    """The pipe is closed before anything is printed, so that no buffer hides it."""
    with subprocess.Popen(COMMAND, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128 + 13  # SIGPIPE
