"""Two losses that move D's answer to the fakes in opposite directions, under one optimizer of G and D."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.players import oppositions

RANK = 140
SEVERITY = "question"
MEANING = """Two losses move D's answer to the fakes in opposite directions, under one optimizer of both networks."""
CURE = "Give each network an optimizer and a `backward(inputs=...)`, and D detached fakes."
EXHIBITS = ("bugs/gan_in_one_class.py", "clean/head_alone_then_with_encoder.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the pairs of networks that one optimizer moves against each other."""
    yield from facts.once(oppositions)[True]
