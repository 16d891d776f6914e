"""Two optimizers on the same gradients, or one on a parameter twice."""

from collections import Counter
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.holders import mistaken_optimizers

RANK = 30
SEVERITY = "error"
MEANING = """Two optimizers stepped on the same gradients, or one holds a parameter twice. As a question: two parameters
are in one memory, as after `p.data = q.data`."""
CURE = "Call `zero_grad()` between the steps, or let one optimizer hold it."
APART = "If they are to be apart, copy values, as `copy_()` and `load_state_dict()` without `assign=True` do."
MISTAKES = ("parameter-twice",)
EXHIBITS = ("bugs/unit_shared_block.py", "bugs/infogan_steps_on_left_over.py", "clean/cleared_in_time.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the steps on another optimizer's gradients, and the parameters that are held twice."""
    for key, steps in facts.steps.items():
        for places, numbers in steps.twice.items():
            text = "two optimizers stepped on the same gradients of {}."
            yield Sentence(text, facts.networks_of(numbers), places)
        times = Counter(() if key in facts.once(mistaken_optimizers) else facts.held_by(key))  # `ownerless` tells
        if numbers := {number for number in times if times[number] > 1}:
            text = f"an optimizer holds {facts.count_of(numbers)} of {{}} twice; each step moves them twice."
            cure = "See whether another network was meant; if not, `list(dict.fromkeys(parameters))` has each once."
            yield Sentence(text, facts.networks_of(numbers), [[*steps.places][-1]], cure)
        alike = set().union(*facts.end.alike) & {*facts.held_by(key)}
        if names := facts.networks_of(alike):
            text = f"{facts.count_of(alike)} of {{}} are in one memory with others: a step on one moves both."
            yield Sentence(text, names, [[*steps.places][-1]], APART, question=True)
