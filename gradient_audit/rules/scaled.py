"""Gradients that GradScaler's scale multiplies, where it should not."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.trace import ScaleWrong

RANK = 110
SEVERITY = "error"
MEANING = """Gradients were clipped while they were multiplied by the loss scale of GradScaler, or divided by a loss
scale that their loss was not multiplied by, as after an `update()` between, or not divided before the step."""
CURE = "Call `scaler.unscale_(optimizer)` before."
MISTAKES = ("clip-before-unscale",)
TEXTS = {
    "multiplied": "a step used gradients that were multiplied by the scale of GradScaler, and not divided by it.",
    "divided": "gradients were divided by the scale of GradScaler, and their loss was not multiplied by it.",
    "another": "gradients were divided by another scale of GradScaler than their loss was multiplied by.",
}
CURES = {
    "multiplied": "`scaler.step(optimizer)`, then `scaler.update()`.",
    "divided": "`scaler.scale(loss).backward()`.",
    "another": "`scaler.update()` after their step, not between their passes; a scaler for each that steps more often.",
}
EXHIBITS = ("bugs/clipped_while_scaled.py", "bugs/scale_changes_between.py", "clean/clipped_after_unscale.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines that clip scaled gradients, and those where scaling and dividing do not match."""
    for place, fate in facts.history.ledger.clips.items():
        if fate == "scaled":
            yield Sentence("gradients were clipped while they were multiplied by the loss scale.", (), [place])
    for place, how in {wrong.place: wrong.how for wrong in facts.of(ScaleWrong)}.items():
        yield Sentence(TEXTS[how], (), [place], CURES[how])
