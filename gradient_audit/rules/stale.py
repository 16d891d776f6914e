"""A step on gradients that a step had used before."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence

RANK = 10
SEVERITY = "error"
MEANING = """A step used gradients that a step had used before. As a question: a pass added to the gradient of a plain
tensor that the script had already used by hand."""
CURE = "Call `zero_grad()` after each step, for LBFGS in its closure; a step too many may be another's."
MISTAKES = ("no-zero-grad",)
EXHIBITS = ("bugs/vqgan_tutorial_zero_grad.py", "bugs/step_twice.py", "clean/accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the steps on old gradients; where all of a step's were old, the step is the line to look at."""
    for steps in facts.steps.values():
        for (line, step), numbers in steps.stale.items():
            text = "an optimizer of {} stepped again on gradients that it had already used."
            places, cure = [line, step], ""
            if step in steps.repeated:  # it is the step that is too many
                places, cure = [step, line], "Remove this step, or call `zero_grad()` and `backward()` before it."
            yield Sentence(text, facts.networks_of(numbers), places, cure)
    for p in (p for p in facts.passes if p.began.adds_to_used):
        text = "this pass added to the gradient of a plain tensor that had been used by hand."
        yield Sentence(text, (), [p.place], "Clear it after its use: `x.grad = None`.", question=True)
