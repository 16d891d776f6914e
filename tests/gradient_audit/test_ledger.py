"""The ledger of gradients, from events alone, without a tensor; test_findings_by_hand.py has any order of calls."""

import pytest

from gradient_audit.ledger import Ledger
from gradient_audit.trace import Overflowed, Unscaled


def ledger_of(events):
    """The ledger after events, each the name of a method and its arguments."""
    ledger = Ledger()
    for name, *arguments in events:
        if name != "look":
            getattr(ledger, name)(*arguments)
        elif ledger.is_cleared(*arguments):
            ledger.vanish({arguments[0]})
    return ledger


ADD, STEP = ("add", 0, {1: False}), ("step", {1}, {1}, {1: False})


@pytest.mark.parametrize(
    ("events", "passes"),
    [
        ([ADD], {0}),
        ([ADD, ("add", 1, {1: False})], {0, 1}),
        ([ADD, STEP], {0}),
        ([ADD, ("vanish", {1})], set()),
        ([ADD, ("add", 1, {}, {1})], set()),
        ([ADD, ("look", 1, True, True, False)], set()),  # zero_() before a pass
        ([ADD, ("look", 1, True, False, True)], set()),  # likewise, through `.data`, before a step
        ([ADD, ("look", 1, False, True, False)], {0}),  # scaled
        ([("add", 0, {1: True}), ("look", 1, True, False, False)], {0}),  # a pass that added zeros
        ([("add", 0, {1: True}), ("look", 1, True, True, True)], {0}),  # likewise, clipped before the step
        ([("add", 0, {1: True}), ("look", 1, True, True, False)], set()),  # likewise, cleared before the next pass
        ([ADD, ("exchange", 1, False, {3, 4})], {3, 4}),
        ([ADD, ("exchange", 1, False, None)], {0}),  # flattened, and not watched in detail
        ([ADD, STEP, ("exchange", 1, False, None)], set()),
    ],
)
def test_which_passes_a_gradient_is_the_sum_of(events, passes):
    assert ledger_of(events).balances[1].passes == passes


CLIP = ("clip", "line 5", {1})


@pytest.mark.parametrize(
    ("events", "fate"),
    [
        ([ADD, CLIP], ""),
        ([ADD, CLIP, STEP], "used"),
        ([CLIP, ADD, STEP], ""),  # before any gradient
        ([("clip", "line 5", set(), "empty"), ADD, STEP], "empty"),
        ([("clip", "line 5", set(), "empty"), ADD, CLIP, STEP], "used"),
        ([ADD, CLIP, ("vanish", {1}), ("add", 1, {1: False}), STEP], ""),  # then cleared
        ([ADD, CLIP, ("fold", Unscaled({1})), STEP], "scaled"),
        ([ADD, ("fold", Unscaled({1})), CLIP, STEP], "used"),
        ([ADD, ("clip", "line 5", {1}, "edited"), STEP], "used"),
        ([ADD, CLIP, ("clip", "line 6", {1}), STEP], "used"),  # by norm, and then by value
    ],
)
def test_what_became_of_clipping(events, fate):
    assert {*ledger_of(events).clips.values()} == {fate}


def test_a_step_uses_the_passes_of_what_it_holds_by_the_sums_that_it_finds():
    ledger = ledger_of([("add", 0, {1: False, 2: False, 3: False}), ("add", 1, {2: False})])
    assert ledger.step({1, 2, 4, 5, 6}, {1, 4}, {1: False, 2: False, 4: True, 5: False}) == {
        frozenset({0}): {1},
        frozenset({0, 1}): {2},
        frozenset(): {5},  # whatever filled it; 4 is all zeros, 6 has no gradient
    }
    assert {number for number, balance in ledger.balances.items() if balance.stepped} == {1, 4}
    ledger.fold(Overflowed({2}))
    assert ledger.skipped == {0, 1}
