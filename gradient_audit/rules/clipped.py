"""Gradients that were clipped, or changed, in vain."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.trace import Clipped

RANK = 100
SEVERITY = "error"
MEANING = """Gradients were clipped, and no step used them. As a question: they were changed after their step, and then
cleared; or there were none to clip."""
CURE = "Clip between `backward()` and `step()`."
EXHIBITS = ("bugs/clipped_then_cleared.py", "bugs/gradient_masked_after_step.py", "clean/clipped_before_hand_step.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines that clip in vain, by what became of what they changed; see `trace.Clipped`."""
    # Where a step is of a kind that was not seen, nothing is known.
    stepped = {clip.place for clip in facts.of(Clipped) if clip.parameters & facts.moved_parameters}
    for place, fate in facts.history.ledger.clips.items():
        if fate == "edited":
            text = "gradients were changed here after the step that used them, and no later step used them."
            yield Sentence(text, (), [place], "Change them between `backward()` and `step()`.", question=True)
        elif fate == "empty":
            text = "no parameter was given to clip here."
            cure = "A generator, as `network.parameters()`, gives its parameters once: make a list of it."
            yield Sentence(text, (), [place], cure, question=True)
        elif not fate and place in stepped:
            yield Sentence("no step used the gradients that were clipped here.", (), [place])
