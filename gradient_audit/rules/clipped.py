"""Gradients that were clipped, or changed, in vain."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.trace import Clipped

RANK = 100
SEVERITY = "error"
MEANING = """Gradients were clipped, and no step used them. As a question: they were changed after their step, and then
cleared; there were none to clip; or a line clipped a network after its step, and another network never."""
CURE = "Clip between `backward()` and `step()`."
OTHER = "See whether the parameters of another network were meant."
EMPTY = f"""Clip after `backward()`. {OTHER} A generator, as `network.parameters()`, gives its parameters once: make a
list of it."""
EXHIBITS = ("bugs/clipped_then_cleared.py", "bugs/gradient_masked_after_step.py", "clean/clipped_before_hand_step.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines that clip in vain, by what became of what they changed; see `trace.Clipped`."""
    # Where a step is of a kind that was not seen, nothing is known.
    stepped = {clip.place for clip in facts.of(Clipped) if clip.parameters & facts.moved_parameters}
    clipped = set().union(*(clip.parameters for clip in facts.of(Clipped)))
    unclipped = set().union(*(s.moved_parameters for s in facts.steps.values() if not s.moved_parameters & clipped))
    for place, fate in facts.history.ledger.clips.items():
        if fate == "edited":
            text = "gradients were changed here after the step that used them, and no later step used them."
            yield Sentence(text, (), [place], "Change them between `backward()` and `step()`.", question=True)
        elif fate == "empty":
            yield Sentence("there was no gradient to clip here.", (), [place], EMPTY, question=True)
        elif not fate and place in stepped:
            yield Sentence("no step used the gradients that were clipped here.", (), [place])
        elif fate == "used" and facts.history.ledger.late[place] > 1 and unclipped:
            text = "gradients that a step had used already were clipped here, and those of {} never."
            yield Sentence(text, facts.networks_of(unclipped), [place], OTHER, question=True)
