"""Gradients that were clipped, or changed, in vain."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence

RANK = 100
SEVERITY = "error"
MEANING = """Gradients were clipped, and no step used them. As a question: they were changed after their step, and then
cleared; or there were none to clip."""
CURE = "Clip between `backward()` and `step()`."
EXHIBITS = ("bugs/clipped_then_cleared.py", "bugs/gradient_masked_after_step.py", "clean/clipped_with_accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines that clip in vain, by what became of what they changed; see `Ledger.clip`."""
    for place, fate in facts.history.ledger.clips.items():
        if fate == "edited":
            text = "gradients were changed here after the step that used them, and no later step used them."
            yield Sentence(text, (), [place], "Change them between `backward()` and `step()`.", question=True)
        elif fate == "empty":
            text = "no parameter was given to clip here."
            cure = "A generator, as `network.parameters()`, gives its parameters once: make a list of it."
            yield Sentence(text, (), [place], cure, question=True)
        elif not fate and facts.steps:
            yield Sentence("no step used the gradients that were clipped here.", (), [place])
