"""A pass through what was computed from weights before a step on these."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.places import Place
from gradient_audit.trace import Numbers

RANK = 157
SEVERITY = "question"
MEANING = """Backward passes of a line come again and again through what was computed from weights before a step on
these, as once, before the loop: the loss does not see what the steps change."""
CURE = "Compute it anew after each step: in the loop, with its `parametrize.cached()`, and without `retain_graph=True`."
EXHIBITS = ("bugs/codes_computed_before_loop.py", "bugs/cached_weight_around_loop.py", "clean/accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines whose passes used, twice, what had read weights before a step on these."""
    found: dict[tuple[int, Place, Place], list[Numbers]] = defaultdict(list)  # by what read them, and the line
    for p in facts.passes:
        if p.began.outdated:
            node, place, numbers = p.began.outdated
            found[node, place, p.place] += filter(None, [numbers & p.used])
    for (_, place, line), weights in found.items():
        if len(weights) > 1:
            text = "passes came through what was computed from {} before their last step."
            yield Sentence(text, facts.networks_of(set().union(*weights)), [place, line])
