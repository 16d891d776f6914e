"""Graphs that live on after later steps."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.history import BuiltRow, Call, ForwardRow
from gradient_audit.places import Place

RANK = 210
SEVERITY = "waste"
MEANING = """The graph that a line built is still in memory after later steps; the line named first is the one that
extends it."""
CURE = "Keep `loss.item()`; compute what no loss needs under `torch.no_grad()`."
MISTAKES = ("loss-kept-with-graph",)
EXHIBITS = ("bugs/losses_in_lists_with_graph.py", "bugs/samples_kept_with_graph.py", "clean/numbers_kept_for_curves.py")
LATER = 2  # steps of each optimizer, after which a graph is kept; the loop's own variables hold one for one step


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the lines whose graphs live on after two more steps of each optimizer, or one where the audit ends then."""
    steps: Counter[int] = Counter(dict.fromkeys(facts.steps, 0))  # after an event, by optimizer
    lines: dict[tuple[Place, str], list[tuple[int, BuiltRow]]] = defaultdict(list)  # the newest first
    for row in reversed(facts.events):
        if row.kind == "step":
            steps[row.optimizer] += 1
        elif row.kind in ("forward", "backward"):
            lines[row.place, row.kind].append((min(steps.values(), default=0), row))
    for (place, _), rows in lines.items():
        newest, oldest = rows[0][0], rows[-1][0]
        least = newest + (1 if oldest < min(steps.values(), default=0) else LATER)
        old = [row for age, row in rows if age >= least and _is_alive(row)]
        if old:
            networks = [name for name, cell in old[0].cells.items() if cell != "-"]
            text = f"a graph that this line built is still alive after later steps, {len(old)}x."
            passes = [row if isinstance(row, Call) else row.in_loss for row in old]
            keepers = [p.keeper for p in passes if p and p.keeper][-1:]
            if keepers:
                text = f"a graph of {place.where} goes on through this line, and is still alive after later steps."
            yield Sentence(text, networks, [*keepers, place])


def _is_alive(row: BuiltRow) -> bool:
    if isinstance(row, ForwardRow):  # that of a loss is told with its loss
        return row.event.has_graph and not row.gone and (row.in_loss is None or row.in_loss.gone)
    return row.began.has_graph and not row.gone
