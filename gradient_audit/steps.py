"""What the steps did with the gradients: derived from the record, for the judgement."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gradient_audit.places import Place
from gradient_audit.record import CLIMB, HAND, Pass, Record, Step


@dataclass
class Steps:
    """The steps of one optimizer, or those by hand, `p.data.add_(p.grad, alpha=-lr)`."""

    places: Counter = field(default_factory=Counter)
    fed: set[int] = field(default_factory=set)  # the parameters that had a gradient at least once
    sums: dict[frozenset, tuple[set[int], Place]] = field(default_factory=dict)  # passes: (parameters, step)
    faults: dict[tuple[str, Place, Place], set[int]] = field(default_factory=lambda: defaultdict(set))  # kind, where
    bare: int = 0  # steps that found no gradient, since the last one that did
    repeated: set[Place] = field(default_factory=set)  # steps whose gradients had all been used


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
        elif event.kind == "step":
            repeated = all((p, n) in first for passes, numbers in event.taken.items() for p in passes for n in numbers)
            if not (event.inner and repeated):  # as the optimizer inside of another one, SAM's
                _add(found[event.optimizer], event, first, record.passes)
                found[event.optimizer].repeated |= {event.place} if repeated else set()
    for p in record.passes:
        p.users = {user: numbers for user, numbers in p.users.items() if numbers}
    return dict(found)


def _add(steps: Steps, event: Step, first: dict, passes: list[Pass]) -> None:
    steps.places[event.place] += 1
    steps.bare = 0 if event.taken else steps.bare + 1
    for taken, numbers in event.taken.items():
        steps.fed |= numbers
        for p in taken:
            handed = not numbers <= passes[p].reached  # of which, is not known
            passes[p].users[event.optimizer] |= numbers | (passes[p].reached if handed else set())
            old = {number for number in numbers if (p, number) in first}
            for number in numbers:
                user, place = first.setdefault((p, number), (event.optimizer, event.place))
                if user != event.optimizer:
                    steps.faults["twice", event.place, place].add(number)
                elif number in old:
                    steps.faults["stale", passes[p].place, event.place].add(number)
        if len(taken) > 1:
            steps.sums.setdefault(taken, (set(), event.place))[0].update(numbers)
            climbed = [p for p in sorted(taken) if passes[p].users.get(CLIMB, set()) & numbers or passes[p].for_inputs]
            if climbed and len(climbed) < len(taken):
                steps.faults["reused", event.place, passes[climbed[0]].place] |= numbers
