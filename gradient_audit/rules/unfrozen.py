"""A network that is not trained, and gets gradients."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import LIMIT, Sentence
from gradient_audit.holders import unused_gradients

RANK = 190
SEVERITY = "waste"
MEANING = """A network, or its first layers, gets gradients, and no optimizer holds it: a judge, a target, a backbone,
word vectors."""
CURE = "`network.requires_grad_(False)` if it is to stay; else give it to an optimizer."
TARGET = """Freeze it, `network.requires_grad_(False)`; where nothing that is trained comes before it, compute it under
`torch.no_grad()`."""
EXHIBITS = ("bugs/deblurgan_vgg_unfrozen.py", "clean/backbone_frozen.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield judges, targets, first layers and tables of embeddings that no optimizer holds."""
    crossed = set().union(*(c.began.crossed for c in facts.history.calls.values() if c.kind == "grad"))
    for unused in facts.once(unused_gradients):
        if not unused.meant:
            continue
        network, places, cure = unused.network, [*unused.wasted], ""
        text = f"no optimizer holds {{}}, which gets gradients, {len(unused.passes)}x."
        if unused.meant == "target":
            module = facts.networks[network].module
            calls = [row.place for row in facts.forwards if row.event.module == module and row.in_loss]
            places = calls or places
            cure = TARGET
        elif unused.meant == "backbone":
            text = f"{facts.count_of(unused.ownerless, network)} of {{}} are held by no optimizer."
        if crossed & unused.ownerless:
            cure = f"{LIMIT}, of what is to be trained: `autograd.grad()` may need these."
        yield Sentence(text, (network,), places, cure)
