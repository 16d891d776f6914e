"""An optimizer that holds a network of another one, too."""

from collections.abc import Iterator
from itertools import permutations

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined

RANK = 170
SEVERITY = "question"
MEANING = "An optimizer holds two networks, and another one holds one of them, too."
CURE = "Give it to one optimizer alone, unless both are to move it."
MISTAKES = ("detached-fakes",)
EXHIBITS = ("bugs/optimizer_of_both.py", "bugs/second_stage_behind_detach.py", "clean/optimizer_replaced.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the optimizers that hold two networks, of which another one that steps holds one, too."""
    parameters = {key: {*facts.held_by(key)} for key in facts.optimizers if key in facts.steps}
    order = [row.optimizer for row in facts.events if row.kind == "step"]
    succeeds = {  # those of which one never steps again once the other one does, more than once
        frozenset([old, new])
        for old, new in permutations({*order}, 2)
        if old not in order[order.index(new) :] and order.count(new) > 1
    }
    for key in parameters:
        networks = facts.networks_of(parameters[key])
        beside = (other for other in parameters if other != key and frozenset([other, key]) not in succeeds)
        others = set().union(*(parameters[other] for other in beside))
        shared = [name for name in networks if others & parameters[key] & facts.parameters[name].keys()]
        if shared and len(shared) < len(networks):
            text = f"an optimizer holds {joined(networks)}, and another one holds {joined(shared)}, too."
            yield Sentence(text, networks, facts.steps[key].places)
