"""An optimizer that never stepped."""

from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.terms import IDLE_AFTER, idle_optimizers

RANK = 40
SEVERITY = "error"
MEANING = "An optimizer never stepped, though its parameters got gradients."
CURE = "Call its `step()`, or give its parameters to an optimizer that steps."
EXHIBITS = ("bugs/deepfill_no_step.py", "bugs/missing_step.py", "clean/second_stage_of_its_own.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the optimizers that never stepped; a question where the audit ended early: one may be of a second stage."""
    another = any(step in steps.repeated for steps in facts.steps.values() for _, step in steps.stale)
    for idle in () if another else facts.once(idle_optimizers):  # else `stale` tells which step was meant for it
        later = not facts.end.by_itself and len(idle.dropped) < IDLE_AFTER
        kind = facts.optimizers[idle.optimizer].kind
        others = f"; another did {facts.most_steps}x" if facts.steps else ", and the script has ended"
        text = f"the optimizer of {{}} ({kind}) never stepped{others}."
        lines = [p.place for p in idle.dropped or idle.passes]
        yield Sentence(text, facts.networks_of(idle.parameters), lines, question=later)
