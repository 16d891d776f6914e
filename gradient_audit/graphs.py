"""What rules know together of graphs that were built and dropped."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from gradient_audit.facts import Facts
from gradient_audit.findings import joined
from gradient_audit.history import BuiltRow, Call, ForwardRow
from gradient_audit.places import Place


@dataclass
class Dropped:
    """A line whose graphs were built, and dropped without a backward pass."""

    place: Place
    networks: list[str]
    text: str
    looks_like_loss: bool


def dropped_graphs(facts: Facts) -> list[Dropped]:
    """Return the lines whose graphs were dropped; of a function that is needed elsewhere, its caller."""
    built = [(_networks_in(row), row) for row in facts.events if isinstance(row, BuiltRow)]
    built = [(names, row) for names, row in built if names]
    needed = {(names, caller) for names, row in built if row.needed or _is_adjoint(row) for caller in row.callers}
    lines: dict[tuple[Place, str], list[tuple[tuple[str, ...], BuiltRow]]] = defaultdict(list)
    for names, row in built:
        useless = [caller for caller in row.callers if (names, caller) not in needed]
        tried = any(caller.place.inner.function == "__init__" for caller in row.callers)  # to see the shapes
        if row.gone and useless and not (tried or _is_needed_in_part(facts, row)):
            place = row.place if useless[0] == row.callers[0] else useless[0].place
            lines[place, row.kind].append((names, row))
    found = []
    for (place, kind), pairs in lines.items():
        times = Counter(name for names, _ in pairs for name in names)
        what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
        names = [name for name in facts.parameters if name in times]
        text = f"{what} {joined(names)} built a graph that no backward pass came through, {max(times.values())}x."
        # Where the value went on into a loss, as fakes for D do, a number on the way is no loss.
        fed = any(facts.is_fed_by(p, name) for p in facts.passes for name in names)
        number = any(isinstance(row, ForwardRow) and row.has_scalar and not row.in_loss for _, row in pairs)
        found.append(Dropped(place, names, text, kind == "grad" or (not fed and number)))
    return found


def _networks_in(row: BuiltRow) -> tuple[str, ...]:
    return tuple(name for name, cell in row.cells.items() if cell in ("here", "read"))


def _is_adjoint(row: BuiltRow) -> bool:
    return isinstance(row, Call) and row.began.for_adjoint


def _is_needed_in_part(facts: Facts, row: BuiltRow) -> bool:
    """Whether the features of a part are needed, which a hook has taken."""
    return isinstance(row, ForwardRow) and any(facts.history.forwards[number].needed for number in row.event.inside)
