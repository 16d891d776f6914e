"""A number that looks like a loss, and got no backward pass."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.graphs import dropped_graphs, losses_without_pass, overwritten_losses

RANK = 150
SEVERITY = "question"
MEANING = """A number that looks like a loss got no backward pass, or `autograd.grad(create_graph=True)` led to none; or
a sum got none, of which one term did and another did not."""
CURE = "If it is a loss, call `backward()` on it; if not, compute it under `torch.no_grad()`."
EXHIBITS = ("bugs/helper_loss_unused.py", "bugs/sum_for_print_alone.py", "clean/dcgan.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the graphs that were dropped though a number was computed from them."""
    # Of these, `unreached` tells.
    told = {place for numbers in facts.without_gradient.values() for place in losses_without_pass(facts, numbers)}
    yield from (sentence for sentence in facts.once(dropped_graphs)[True] if told.isdisjoint(sentence.places))
    for place, names, times, turns in overwritten_losses(facts):
        text = (
            f"a number computed here got no backward pass in {times} of {turns} turns of a loop, and its graph is gone."
        )
        yield Sentence(text, names, [place], "If it is a loss, call `backward()` in each turn, or add it with `+=`.")
    for place in facts.end.unused_sums:
        text = "this sum of losses got no backward pass, though one of its terms did, and another did not."
        cure = "If the sum is the loss that was meant, call `backward()` on it; if it is only printed, this is right."
        yield Sentence(text, (), [place], cure)
