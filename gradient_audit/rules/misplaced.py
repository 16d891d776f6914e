"""The gradient of one parameter, given to another one of the same network."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.places import Place
from gradient_audit.trace import GradientReplaced, HandStep

RANK = 85
SEVERITY = "question"
MEANING = "A parameter got the gradient of another one of its network, by hand, and not its own."
CURE = "Give each gradient to its own parameter, by name, or from lists in the same order."
EXHIBITS = ("bugs/gradients_in_another_order.py", "clean/gradients_as_one_vector.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines of calls whose gradients others of their network got, or of the steps by hand on these."""
    misplaced: dict[tuple[Place, str], set[int]] = defaultdict(set)
    for event in facts.of(GradientReplaced) + facts.of(HandStep):
        is_step = isinstance(event, HandStep)
        numbers = event.parameters if is_step else {event.parameter}
        places = [event.place] if is_step else [facts.history.calls[number].place for number in event.calls or ()]
        for name in facts.networks_of(event.strangers):
            for place in places:
                misplaced[place, name] |= numbers & facts.parameters[name].keys()
    for (place, name), numbers in misplaced.items():
        if numbers:
            text = f"{facts.count_of(numbers, name)} of {{}} got the gradients of others."
            yield Sentence(text, (name,), [place])
