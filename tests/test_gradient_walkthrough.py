"""The one-weight GAN: what autograd computes is what the formulas say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.tools import gradient_walkthrough as walkthrough

pytestmark = pytest.mark.numerics
WAYS = {
    "one": walkthrough.way_one,
    "one, not frozen": lambda: walkthrough.way_one(freeze=False),
    "two": walkthrough.way_two,
    "stale": walkthrough.stale_graph,
    "stale, unseen": lambda: walkthrough.stale_graph(hide_step=True),
}

START = ("start", None, None, 0.5, 0.7)
D_BACKWARD = ("L_D.backward()", None, 0.35, 0.5, 0.7)
D_STEP = ("optimizer_d.step()", None, 0.35, 0.5, 0.35)
EXPECTED = {  # after, grad G, grad D, weight G, weight D
    "one": [
        START,
        D_BACKWARD,
        ("L_G.backward()", 0.49, 0.35, 0.5, 0.7),
        ("optimizer_g.step()", 0.49, 0.35, 0.01, 0.7),
        ("optimizer_d.step()", 0.49, 0.35, 0.01, 0.35),
    ],
    "one, not frozen": [
        START,
        D_BACKWARD,
        ("L_G.backward()", 0.49, 0.7, 0.5, 0.7),
        ("optimizer_g.step()", 0.49, 0.7, 0.01, 0.7),
        ("optimizer_d.step()", 0.49, 0.7, 0.01, 0.0),
    ],
    "two": [
        START,
        D_BACKWARD,
        D_STEP,
        ("L_G.backward()", 0.1225, 0.525, 0.5, 0.35),
        ("optimizer_g.step()", 0.1225, 0.525, 0.3775, 0.35),
    ],
    "stale": [START, D_BACKWARD, D_STEP],
    "stale, unseen": [
        START,
        D_BACKWARD,
        ("D's step, by .data", None, 0.35, 0.5, 0.35),
        ("L_G.backward()", 0.245, 0.7, 0.5, 0.35),
        ("optimizer_g.step()", 0.245, 0.7, 0.255, 0.35),
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_gradients_and_weights_after_every_call_are_the_known_ones(way):
    checkpoints = WAYS[way]().checkpoints
    assert [checkpoint.after for checkpoint in checkpoints] == [row[0] for row in EXPECTED[way]]
    for checkpoint, (_, *expected) in zip(checkpoints, EXPECTED[way], strict=True):
        assert list(checkpoint.values) == list(walkthrough.COLUMNS)
        assert list(checkpoint.values.values()) == [  # float32, and below 1
            None if value is None else pytest.approx(value, abs=5e-7) for value in expected
        ]


def check_by_hand(way):
    """Every number that a call changes has a formula, whose value, and whose numbers as written, are autograd's."""
    for before, checkpoint in zip(way.checkpoints, way.checkpoints[1:], strict=False):
        changed = {column for column, value in checkpoint.values.items() if value != before.values[column]}
        assert set(checkpoint.by_hand) == changed
        for column, by_hand in checkpoint.by_hand.items():
            assert by_hand.value == pytest.approx(checkpoint.values[column], rel=1e-4, abs=1e-6)  # in float32
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
        for way in walkthrough.ways():
            check_by_hand(way)


def test_the_stale_graph_is_refused_and_the_message_is_shown():
    way = walkthrough.stale_graph()
    assert way.error.startswith("RuntimeError: one of the variables needed for gradient computation has been modified")
    assert "[1, 1, 1, 1]" in way.error  # the shape of D's weight
    assert "inplace operation" in " ".join(walkthrough.describe(way).split())


def test_the_step_that_autograd_does_not_see_mixes_the_old_and_the_new_weight():
    last = walkthrough.stale_graph(hide_step=True).checkpoints[-1].values["grad G"]
    old = walkthrough.way_one().checkpoints[-1].values["grad G"]
    new = walkthrough.way_two().checkpoints[-1].values["grad G"]
    assert last == pytest.approx((old * new) ** 0.5)  # theta_D_old theta_D_new, between both squares


def test_freezing_changes_nothing_but_what_reaches_d():
    frozen, unfrozen = walkthrough.way_one().checkpoints[-1].values, WAYS["one, not frozen"]().checkpoints[-1].values
    assert {column for column in frozen if frozen[column] != unfrozen[column]} == {"grad D", "weight D"}


def test_the_printout_fits_a_terminal_of_80_columns_and_is_plain_ascii(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    walkthrough.main()
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 80
    for number in ("0.0000", "0.0100", "0.1225", "0.2450", "0.2550", "0.3500", "0.3775", "0.4900", "0.5250", "0.7000"):
        assert number in printed
