"""The steps of each optimizer: on which gradients, of which passes, and what is wrong with them."""

from collections import Counter, defaultdict
from collections.abc import Set
from dataclasses import dataclass, field

from gradient_audit.history import HAND, Call, History, StepRow
from gradient_audit.places import Place

CLIMB = -1  # for the number of an optimizer: a write by hand before its step, as SAM's
Lines = dict[tuple[Place, ...], set[int]]  # parameters, by the lines to look at


@dataclass
class Steps:
    """The steps of one optimizer, or those by hand, `p.data.add_(p.grad, alpha=-lr)`."""

    places: Counter = field(default_factory=Counter)
    moved_parameters: set[int] = field(default_factory=set)  # that had a gradient at least once
    sums: dict[frozenset, tuple[set[int], Place]] = field(default_factory=dict)  # passes: (parameters, step)
    # Steps on gradients that it had used before, that another one had, and that were used by hand and then added to.
    stale: Lines = field(default_factory=lambda: defaultdict(set))  # the pass, the step
    twice: Lines = field(default_factory=lambda: defaultdict(set))  # the step, the other one's
    reused: Lines = field(default_factory=lambda: defaultdict(set))  # the pass, the one before, the step
    bare: int = 0  # steps that found no gradient, since the last one that did
    last: dict[int, int] = field(default_factory=dict)  # by parameter: the last step that found one, counted from 1
    repeated: set[Place] = field(default_factory=set)  # steps whose gradients had all been used
    used_by_hand: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # passes, by parameter


def steps_of(history: History, stepped: Set[int]) -> dict[int, Steps]:
    """Return the steps by optimizer, and note with each pass who used which of its gradients.

    A write by hand is a step if no optimizer steps on the parameter, else a climb before that step. stepped: the
    parameters on which one does.
    """
    steps: dict[int, Steps] = defaultdict(Steps)
    first: dict[tuple[int, int], StepRow] = {}  # by pass and parameter
    for row in history.rows:
        if row.kind == "hand":
            _note_hand_step(steps[HAND], row, history, stepped)
        elif row.kind == "step":
            repeated = all((p, n) in first for passes, numbers in row.sums.items() for p in passes for n in numbers)
            if not (row.event.inner and repeated):  # as the optimizer inside of another one, SAM's
                _note_step(steps[row.optimizer], row, first, history.calls)
                steps[row.optimizer].repeated |= {row.place} if repeated else set()
    _note_unseen_steps(history.passes)
    for call in history.calls.values():
        call.users = {user: numbers for user, numbers in call.users.items() if numbers}
    return {key: one for key, one in steps.items() if one.places}


def _note_hand_step(steps: Steps, row: StepRow, history: History, stepped: Set[int]) -> None:
    for passes, numbers in row.sums.items():
        for call in map(history.calls.get, passes):
            call.users[HAND] |= numbers - stepped
            call.users[CLIMB] |= numbers & stepped
    if moved := row.parameters - stepped:
        steps.places[row.place] += 1
        steps.moved_parameters |= moved
    for passes, numbers in row.added.items():
        for number in numbers - stepped:
            old = passes & steps.used_by_hand[number]
            for call in (history.calls[one] for one in old if passes > old):  # one that came since added to it
                steps.stale[call.place, row.place].add(number)
            steps.used_by_hand[number] |= passes


def _note_unseen_steps(passes: list[Call]) -> None:
    """Take passes after which operations were not watched for used by hand, as others like them are."""
    used: dict[tuple, set[int]] = defaultdict(set)
    for p in passes:
        used[p.place, frozenset(p.reached)] |= p.users.get(HAND, set())
    for p, later in zip(passes, [*passes[1:], None], strict=False):
        if not p.began.detailed or (later and not later.began.detailed):
            p.users[HAND] |= used[p.place, frozenset(p.reached)]


def _note_step(steps: Steps, row: StepRow, first: dict[tuple[int, int], StepRow], calls: dict[int, Call]) -> None:
    steps.places[row.place] += 1
    steps.bare = 0 if row.sums else steps.bare + 1
    for passes, numbers in row.sums.items():
        steps.moved_parameters |= numbers
        steps.last |= dict.fromkeys(numbers, steps.places.total())
        for call in map(calls.get, passes):
            handed = not numbers <= call.reached  # of which, is not known
            call.users[row.optimizer] |= call.reached | numbers if handed else numbers
            climbed = call.users.get(CLIMB, set()) if len(passes) > 1 else set()  # `reused` tells
            for number in numbers:
                before = first.setdefault((call.number, number), row)
                # A copy of another network's gradient may be used again, as a mean that stays, and one of
                # `autograd.grad()` beside a new one, as a momentum.
                is_other = number not in call.reached or (call.kind == "grad" and call.number < max(passes))
                if before is row or number in climbed or (is_other and "copied" in call.read):
                    continue
                if before.optimizer != row.optimizer:
                    steps.twice[row.place, before.place].add(number)
                else:
                    steps.stale[call.place, row.place].add(number)
        if len(passes) > 1:
            steps.sums.setdefault(passes, (set(), row.place))[0].update(numbers)
            _note_reuse(steps, row, [calls[number] for number in sorted(passes)], numbers)


def _note_reuse(steps: Steps, row: StepRow, summed: list[Call], numbers: Set[int]) -> None:
    climbed = [call for call in summed if call.users.get(CLIMB, set()) & numbers]
    # What goes backward further, as in truncated backpropagation through time, is no other use.
    lines = {call.place for call in summed if "for inputs" in call.read and "for backward" not in call.read}
    by_hand = climbed or [call for call in summed if call.place in lines]
    others = [call for call in summed if "for inputs" not in call.read]
    # By one line, as in a function, of which some passes have inputs, and others none.
    if not climbed and len(by_hand) == len(summed) and not any(call.leaves or not call.split for call in others):
        by_hand = [call for call in summed if call not in others]
    if by_hand and any(call.kind == "backward" for call in summed if call not in by_hand):  # which adds to `.grad`
        steps.reused[summed[-1].place, by_hand[0].place, row.place] |= numbers
