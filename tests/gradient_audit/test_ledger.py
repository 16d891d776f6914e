"""The ledger of gradients, from events alone: without a tensor, against sums that are kept by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ],
)
def test_what_became_of_clipping(events, fate):
    assert ledger_of(events).clips == {"line 5": fate}


def test_a_step_uses_the_passes_of_what_it_holds_by_the_sums_that_it_finds():
    ledger = ledger_of([("add", 0, {1: False, 2: False, 3: False}), ("add", 1, {2: False})])
    assert ledger.step({1, 2, 4, 5}, {1, 4}, {1: False, 2: False, 4: True, 5: False}) == {
        frozenset({0}): {1},
        frozenset({0, 1}): {2},
        frozenset(): {5},  # whatever filled it; 4 is all zeros
    }
    assert {number for number, balance in ledger.balances.items() if balance.stepped} == {1, 4}
    ledger.fold(Overflowed({2}))
    assert ledger.skipped == {0, 1}


ACCOUNTS = st.sets(st.integers(1, 3), min_size=1)
CALLS = st.lists(st.tuples(st.sampled_from(["pass", "zero_", "none", "scale", "step"]), ACCOUNTS), max_size=30)


@given(CALLS)
def test_any_order_of_calls_against_sums_that_are_kept_by_hand(calls):
    """By hand: of each gradient, the passes in it, or None. Between passes and steps, only its look tells."""
    ledger, held, number = Ledger(), dict.fromkeys((1, 2, 3)), 0
    written, zero = set(), set()
    for call, accounts in calls:
        if call == "none":
            held |= dict.fromkeys(accounts)
        elif call in ("zero_", "scale"):
            touched = {account for account in accounts if held[account] is not None}
            written |= touched
            if call == "zero_":
                zero |= touched
                held |= {account: set() for account in touched}
        else:
            for account, passes in held.items():  # as `Gradients.look` does
                if passes is None or ledger.is_cleared(account, account in zero, account in written, call == "step"):
                    ledger.vanish({account})
            if call == "pass":
                held |= {account: (held[account] or set()) | {number} for account in accounts}
                ledger.add(number, dict.fromkeys(accounts, False))
                number, zero, written = number + 1, zero - accounts, written - accounts
            else:
                there = {account for account in accounts if held[account] is not None}
                taken = ledger.step(accounts, accounts, {account: account in zero for account in there})
                sums = {frozenset(held[account]) for account in there if held[account]}
                assert taken == {key: {n for n in there if held[n] == key} for key in sums}
        if call in ("pass", "step"):
            assert {n: set(ledger.balances[n].passes) for n in held} == {
                n: passes or set() for n, passes in held.items()
            }
