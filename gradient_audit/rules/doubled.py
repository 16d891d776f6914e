"""A term of a loss that went backward twice for one step."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.history import Call
from gradient_audit.places import Place

RANK = 165
SEVERITY = "question"
MEANING = "A step used the sum of two passes, one on a term of the other's loss: its gradient counts twice."
CURE = "Call `backward()` on each loss once: on the terms, or on their sum."
EXHIBITS = ("bugs/running_sum_goes_backward.py", "clean/accumulation.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the passes whose terms others of the same step went through, for the same parameters, by their lines."""
    lines: dict[Place, tuple[set[int], list[Place]]] = defaultdict(lambda: (set(), []))
    for steps in facts.steps.values():
        for passes, (numbers, _) in steps.sums.items():
            calls = [facts.history.calls[number] for number in sorted(passes)]
            for call in calls:
                for row in call.terms:
                    others = [q.place for q in calls if q.number in row.counted_by and _is_part(q, call)]
                    if others and row.term.reached & numbers:
                        lines[call.place][0].update(row.term.reached & numbers)
                        lines[call.place][1].extend(others)
    for place, (numbers, others) in lines.items():
        text = "a term of the loss of {} went backward in two passes, and a step used the sum."
        yield Sentence(text, facts.networks_of(numbers), [place, *others])


def _is_part(q: Call, p: Call) -> bool:
    """Whether all of a loss is in another, for the same optimizers; else they may be for networks of their own."""
    return q.users.keys() == p.users.keys() and all(p.number in row.crossed_by for row in q.terms)
