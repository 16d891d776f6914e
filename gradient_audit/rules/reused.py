"""A gradient that was used by hand, and then once more in a sum."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence

RANK = 160
SEVERITY = "question"
MEANING = """A gradient was used by hand, and then added to the gradient of another pass, and a step used the sum."""
CURE = "If that gradient was only for that use, call `zero_grad()` after it, before the next pass."
EXHIBITS = ("bugs/sharpness_inside_step.py", "clean/sharpness_aware_optimizer.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the steps on a sum of which a part had been used by hand."""
    for steps in facts.steps.values():
        for places, numbers in steps.reused.items():
            text = "a gradient of {} was used by hand, this pass added its own, and a step used the sum."
            yield Sentence(text, facts.networks_of(numbers), places)
