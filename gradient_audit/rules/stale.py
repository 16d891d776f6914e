"""A step on gradients that a step had used before."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.history import HAND
from gradient_audit.places import Place
from gradient_audit.terms import idle_optimizers

RANK = 10
SEVERITY = "error"
MEANING = """A step used gradients that a step had used before. As a question: a pass added to the gradient of a plain
tensor that the script had already used by hand."""
CURE = "Call `zero_grad()` before the first `backward()` of each step, for LBFGS in its closure."
MISTAKES = ("no-zero-grad",)
ONCE = "Remove this step, or call `zero_grad()` and `backward()` before it."
EXHIBITS = ("bugs/vqgan_tutorial_zero_grad.py", "bugs/step_twice.py", "clean/accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the steps on old gradients, once; where all of a step's were old, the step is the line to look at."""
    found: dict[Place | None, dict[tuple[int, Place, Place], set[int]]] = defaultdict(dict)
    for key, steps in facts.steps.items():
        for (line, step), numbers in steps.stale.items():
            found[step if step in steps.repeated else None][key, line, step] = numbers
    for too_many, lines in found.items():
        several = len({key for key, *_ in lines}) > 1
        subject, pronoun = ("optimizers", "they") if several else ("an optimizer", "it")
        text = f"{subject} of {{}} stepped again on gradients that {pronoun} had already used."
        if all(key == HAND for key, *_ in lines):
            text = "a step by hand on {} used gradients that one had used before."
        places, cure = [place for _, *pair in lines for place in pair], ""
        if too_many:
            other = facts.networks_of(set().union(*(idle.parameters for idle in facts.once(idle_optimizers))))
            places = [too_many, *places]
            cure = f"Step the optimizer of {joined(other)} here, which never stepped." if other else ONCE
        yield Sentence(text, facts.networks_of(set().union(*lines.values())), places, cure)
    for p in (p for p in facts.passes if p.began.adds_to_used):
        text = "this pass added to the gradient of a plain tensor that had been used by hand."
        yield Sentence(text, (), [p.place], "Clear it after its use: `x.grad = None`.", question=True)
