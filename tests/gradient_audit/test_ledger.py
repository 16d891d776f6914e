"""The ledger of gradients, from events alone, without a tensor; test_findings_by_hand.py has any order of calls."""

import pytest

from gradient_audit.ledger import Ledger
from gradient_audit.trace import Clipped, GradientReplaced, Pass, Step, Unscaled


def ledger_of(events):
    """The ledger after events; a tuple is a look at the gradient of parameter 1, as `is_cleared` takes it."""
    ledger = Ledger()
    for event in events:
        if not isinstance(event, tuple):
            ledger.fold(event)
        elif ledger.is_cleared(1, *event):
            ledger.fold(GradientReplaced(1, zero=True))
    return ledger


def step(parameters, trained, with_gradient, empty=frozenset()):
    return Step("line 9", 7, parameters, trained, with_gradient, empty, inside=None, inner=False)


GONE = GradientReplaced(1, zero=False)
ADD, ADD_ZEROS, STEP = Pass(0, {1}), Pass(0, {1}, zeros={1}), step({1}, {1}, {1})


@pytest.mark.parametrize(
    ("events", "passes"),
    [
        ([ADD], {0}),
        ([ADD, Pass(1, {1})], {0, 1}),
        ([ADD, STEP], {0}),
        ([ADD, GONE], set()),
        ([ADD, Pass(1, {1}, dropped={1})], set()),
        ([ADD, (True, True, False)], set()),  # zero_() before a pass
        ([ADD, (True, False, True)], set()),  # likewise, through `.data`, before a step
        ([ADD, (False, True, False)], {0}),  # scaled
        ([ADD_ZEROS, (True, False, False)], {0}),  # a pass that added zeros
        ([ADD_ZEROS, (True, True, True)], {0}),  # likewise, clipped before the step
        ([ADD_ZEROS, (True, True, False)], set()),  # likewise, cleared before the next pass
        ([ADD, GradientReplaced(1, False, {3, 4})], {3, 4}),
        ([ADD, GradientReplaced(1, False, None)], {0}),  # flattened, and not watched in detail
        ([ADD, STEP, GradientReplaced(1, False, None)], set()),
    ],
)
def test_which_passes_a_gradient_is_the_sum_of(events, passes):
    assert ledger_of(events).balances[1].passes == passes


CLIP, CLIP_NOTHING = Clipped("line 5", {1}, ""), Clipped("line 5", set(), "empty")


@pytest.mark.parametrize(
    ("events", "fate"),
    [
        ([ADD, CLIP], ""),
        ([ADD, CLIP, STEP], "used"),
        ([CLIP, ADD, STEP], ""),  # before any gradient
        ([CLIP_NOTHING, ADD, STEP], "empty"),
        ([CLIP_NOTHING, ADD, CLIP, STEP], "used"),
        ([ADD, CLIP, GONE, Pass(1, {1}), STEP], ""),  # then cleared
        ([ADD, CLIP, Unscaled({1}), STEP], "scaled"),
        ([ADD, Unscaled({1}), CLIP, STEP], "used"),
        ([ADD, Clipped("line 5", {1}, "edited"), STEP], "used"),
        ([ADD, CLIP, Clipped("line 6", {1}, ""), STEP], "used"),  # by norm, and then by value
    ],
)
def test_what_became_of_clipping(events, fate):
    assert {*ledger_of(events).clips.values()} == {fate}


def test_a_step_uses_the_passes_of_what_it_holds_by_the_sums_that_it_finds():
    ledger = ledger_of([Pass(0, {1, 2, 3}), Pass(1, {2})])
    assert ledger.fold(step({1, 2, 4, 5, 6}, {1, 4}, {1, 2, 4, 5}, empty={4})) == {
        frozenset({0}): {1},
        frozenset({0, 1}): {2},
        frozenset(): {5},  # whatever filled it; 4 is all zeros, 6 has no gradient
    }
    assert {number for number, balance in ledger.balances.items() if balance.stepped} == {1, 4}
    ledger.fold(Unscaled(set(), infinite={2}))
    assert ledger.skipped == {0, 1}
