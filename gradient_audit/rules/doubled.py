"""A term of a loss that went backward twice for one step."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
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
            for p in map(facts.history.calls.__getitem__, sorted(passes)):
                for row in (row for row in p.terms if row.term.reached & numbers):
                    others = [facts.history.calls[other] for other in sorted(row.counted_by & passes)]
                    # Losses that share a term, and have others or other users, may be for different networks: `mixed`.
                    others = [q for q in others if q.users.keys() == p.users.keys()]
                    others = [q for q in others if all(p.number in part.crossed_by for part in q.terms)]
                    if others:
                        lines[p.place][0].update(row.term.reached & numbers)
                        lines[p.place][1].extend(q.place for q in others)
    for place, (numbers, others) in lines.items():
        text = "a term of the loss of {} went backward in two passes, and a step used the sum."
        yield Sentence(text, facts.networks_of(numbers), [place, *others])
