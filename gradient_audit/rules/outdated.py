"""A pass through a forward pass that is older than a step on its weights."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.places import Place

RANK = 157
SEVERITY = "question"
MEANING = """Backward passes of a line come again and again through a forward pass from before a step on its weights, as
of one that is made once, before the loop: the loss does not see what the steps change."""
CURE = "Make the forward pass anew after each step, inside of the loop, without `retain_graph=True`."
EXHIBITS = ("bugs/codes_computed_before_loop.py", "clean/accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the forward passes that gave weights a gradient after a step on these, twice by one line."""
    age = {id(row): index for index, row in enumerate(facts.history.rows)}
    steps = [(age[id(row)], row.parameters) for row in facts.history.rows if row.kind == "step"]
    found: dict[tuple[int, Place], list[set[int]]] = defaultdict(list)  # the weights, by forward pass and line
    for p in facts.passes:
        for forward in (facts.history.forwards[number] for number, *_ in p.began.outputs):
            begin, end = age[id(forward)], age[id(p)]
            stepped = set().union(*(numbers for at, numbers in steps if begin < at < end))
            if numbers := stepped & forward.event.parameters & p.used:
                found[forward.event.number, p.place].append(numbers)
    for (number, line), weights in found.items():
        if len(weights) > 1:
            text = "passes came through a forward pass of {} from before their last step."
            places = [facts.history.forwards[number].place, line]
            yield Sentence(text, facts.networks_of(set().union(*weights)), places)
