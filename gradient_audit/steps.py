"""What the steps did with the gradients: derived from the record, for the judgement."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gradient_audit.places import Place
from gradient_audit.record import CLIMB, HAND, Pass, Record, Step


@dataclass
class Steps:
    """The steps of one optimizer, or those by hand, `p.data.add_(p.grad, alpha=-lr)`."""

    places: Counter = field(default_factory=Counter)
    before: int = -1  # the number of passes before the last step
    fed: set[int] = field(default_factory=set)  # the parameters that had a gradient at least once
    stale: dict[tuple[Place, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # (pass, step)
    sums: dict[frozenset, tuple[set[int], Place]] = field(default_factory=dict)  # passes: (parameters, step)
    twice: dict[tuple[Place, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # (here, first)
    repeated: set[Place] = field(default_factory=set)  # steps with no backward pass since the one before


def steps_of(record: Record) -> dict[int, Steps]:
    """Return the steps by the optimizer's number, and note in each pass who used its gradients.

    A write by hand is a step if no optimizer steps on the parameter, else a climb before that step.
    """
    found: dict[int, Steps] = defaultdict(Steps)
    first: dict[tuple[int, int], tuple[int, Place]] = {}  # by pass and parameter: who stepped on it first
    by_optimizers = {account.number for account in record.accounts.values() if account.stepped}
    for event in record.events:
        if event.kind == "hand":
            event.kind, event.reached = "step", event.reached - by_optimizers
            for passes, numbers in event.taken.items():
                for number in passes:
                    record.passes[number].users[HAND] |= numbers - by_optimizers
                    record.passes[number].users[CLIMB] |= numbers & by_optimizers
            if event.reached:
                found[HAND].places[event.place] += 1
                found[HAND].fed |= event.reached
        elif event.kind == "step" and not (event.inner and _is_repeated(event, first)):
            _add(found[event.optimizer], event, first, record.passes)
    for p in record.passes:
        p.users = {user: numbers for user, numbers in p.users.items() if numbers}
    return dict(found)


def _is_repeated(event: Step, first: dict) -> bool:
    """Whether another step has used all these gradients: an optimizer inside another one, as in SAM."""
    used = (any((p, number) in first for p in passes) for passes, numbers in event.taken.items() for number in numbers)
    return all(used)


def _add(steps: Steps, event: Step, first: dict, passes: list[Pass]) -> None:
    for taken, numbers in event.taken.items():
        steps.fed |= numbers
        for p in taken:
            passes[p].users[event.optimizer] |= numbers
            for number in numbers:
                user, place = first.setdefault((p, number), (event.optimizer, event.place))
                if user != event.optimizer:
                    steps.twice[event.place, place].add(number)
                elif p < steps.before:
                    steps.stale[passes[p].place, event.place].add(number)
        if len(taken) > 1:
            steps.sums.setdefault(taken, (set(), event.place))[0].update(numbers)
    if steps.before == event.before:
        steps.repeated.add(event.place)
    steps.before = event.before
    steps.places[event.place] += 1
