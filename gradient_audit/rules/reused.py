"""A gradient that was used by hand, and then once more in a sum."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence

RANK = 160
SEVERITY = "question"
MEANING = """A gradient was used by hand, and then added to the gradient of another pass, and a step used the sum."""
CURE = "If the first gradient was only for that use, call `zero_grad()` after it."
EXHIBITS = ("bugs/sharpness_not_cleared.py", "clean/sharpness_aware.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the steps on a sum of which a part had been used by hand."""
    for steps in facts.steps.values():
        for (kind, *places), numbers in steps.faults.items():
            if kind == "reused":
                text = "a gradient of {} was used by hand, and a step added it to another one."
                yield Sentence(text, facts.networks_of(numbers), places)
