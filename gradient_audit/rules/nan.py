"""Gradients that are NaN, and the line where the first came from."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.trace import NanFound

RANK = 120
SEVERITY = "error"
MEANING = "A step used gradients that are NaN; the line is where the first NaN came from."
CURE = "Keep 0, NaN, single samples out of that line; a later mask is too late."
MISTAKES = ("nan-gradient",)
EXHIBITS = ("bugs/root_of_zero_distance.py", "bugs/deviation_of_one_sample.py", "clean/root_of_safe_distance.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the first NaN if a step used it; a question where only a loss was NaN."""
    steps = [row for row in facts.events if row.kind == "step" and row.event and row.event.nan]
    lost = [p for p in facts.passes if p.began.nan]
    if steps or lost:
        text = "a step used gradients of {} that are NaN." if steps else "the loss of a backward pass is NaN."
        first = [found.place for found in facts.of(NanFound)][:1]
        networks = facts.networks_of(set().union(*(row.event.nan for row in steps)))
        yield Sentence(text, networks, [*first, (steps or lost)[0].place], question=not steps)
