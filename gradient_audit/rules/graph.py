"""A forward pass that built a graph for nothing."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.graphs import dropped_graphs

RANK = 220
SEVERITY = "waste"
MEANING = "A forward pass built a graph that no backward pass went through."
CURE = "Delete it, or compute it, and nothing that a loss uses, under `torch.no_grad()`."
EXHIBITS = ("bugs/average_sampled_with_graph.py", "clean/validation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the graphs that were dropped, but for those of which `unused` tells."""
    yield from facts.once(dropped_graphs)[False]
