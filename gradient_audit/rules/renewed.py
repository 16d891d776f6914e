"""An optimizer that is made anew while it trains."""

from collections import Counter
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.trace import OptimizerMade

RANK = 180
SEVERITY = "question"
MEANING = "An optimizer is made anew while it trains, and its state is lost."
CURE = "Make it once, before the loop, unless each one is for another task."
EXHIBITS = ("bugs/adam_anew_in_each_iteration.py", "clean/optimizer_made_per_task.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the optimizers that were made more than once again, at one line, for the same parameters."""
    for number, made in Counter(event.number for event in facts.of(OptimizerMade)).items():
        times, optimizer = made - 1, facts.optimizers.get(number)
        if times > 1 and optimizer and optimizer.has_state:
            text = f"the optimizer of {{}} ({optimizer.kind}) was made anew {times}x; its state was lost."
            yield Sentence(text, facts.networks_of(optimizer.parameters), [optimizer.made] if optimizer.made else [])
