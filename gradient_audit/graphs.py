"""What rules know together of graphs that were built and dropped."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence, joined
from gradient_audit.history import BuiltRow, Call, ForwardRow
from gradient_audit.places import Place
from gradient_audit.terms import dead_terms, rebuilt_losses
from gradient_audit.trace import GraphMissing


def passes_cut_off(facts: Facts) -> dict[str, tuple[list[Call], list[Place]]]:
    """Return, by network, the passes whose loss comes from it without a graph, and where the last one was cut off."""
    grads = (call for call in facts.history.calls.values() if not call.is_pass)
    sloped = set().union(*(call.began.crossed for call in grads))  # maybe a slope of 0
    reached = set().union(*(p.reached for p in facts.passes))  # and cleared before the step
    found = {}
    for network, missing in facts.without_gradient.items():
        missing = missing - reached
        passes = [p for p in facts.passes if p.began.sources & missing - sloped]
        # One that moves another network is for that.
        last = [*sorted(passes, key=lambda p: not p.used)][-1:]
        cuts = [(m, place) for p in last for m, place, sources in p.began.cuts if sources & missing]
        cuts = [place for mistake, place in cuts if mistake in ("detached-fakes", "no-graph")]
        meant = {place for p in facts.passes if p.used for _, place, _ in p.began.cuts}  # for another loss
        others = [] if losses_without_pass(facts, missing) else cuts
        found[network] = passes, [place for place in cuts if place not in meant] or others
    return found


def calls_cut_off(facts: Facts) -> set[Call]:
    """Return the passes of which `unreached` names the line that cut them off."""
    return {p for passes, cuts in facts.once(passes_cut_off).values() if cuts for p in passes}


def dropped_graphs(facts: Facts) -> dict[bool, list[Sentence]]:
    """Return what is said of lines whose graphs were dropped, by whether their result looks like a loss.

    The line is, of a function that is needed elsewhere, its caller.
    """
    found: dict[bool, list[Sentence]] = {True: [], False: []}
    if facts.of(GraphMissing) or facts.once(rebuilt_losses):  # which is the cause
        return found
    built = [(_networks_in(row), row) for row in facts.events if isinstance(row, BuiltRow)]
    built = [(names, row) for names, row in built if names]
    needed = {(names, caller) for names, row in built if row.needed for caller in row.callers}
    lines: dict[tuple[Place, str], list[tuple[tuple[str, ...], BuiltRow]]] = defaultdict(list)
    for names, row in built:
        useless = [caller for caller in row.callers if (names, caller) not in needed]
        tried = any(caller.inner.function == "__init__" for caller in row.callers)  # to see the shapes
        if row.gone and useless and not (tried or _is_needed_in_part(facts, row) or _is_cut_off(facts, row, names)):
            lines[row.place if useless[0] == row.callers[0] else useless[0], row.kind].append((names, row))
    for (place, kind), pairs in lines.items():
        times = Counter(name for names, _ in pairs for name in names)
        what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
        names = [name for name in facts.parameters if name in times]
        text = f"{what} {joined(names)} built a graph that no backward pass came through, {max(times.values())}x."
        # Where the value went on into a loss, as fakes for D do, a number on the way is no loss.
        fed = any(facts.is_fed_by(p, name) for p in facts.passes for name in names)
        number = any(isinstance(row, ForwardRow) and row.has_scalar and not row.in_loss for _, row in pairs)
        found[kind == "grad" or (not fed and number)].append(Sentence(text, names, [place]))
    return found


def overwritten_losses(facts: Facts) -> Iterator[tuple[Place, tuple[str, ...], int, int]]:
    """Yield the lines of a loop whose forward pass leads to a loss in some turns, and to a dropped number in others.

    With the networks, the number of those turns, and that of all.
    """
    turns: dict[tuple, list[ForwardRow]] = defaultdict(list)
    for row in facts.events:
        if isinstance(row, ForwardRow) and row.event.has_graph and (names := _networks_in(row)):
            turns[names, row.place, row.callers].append(row)
    for (names, place, _), rows in turns.items():
        dropped = [row for row in rows if row.gone and row.has_scalar and not (row.needed or row.in_loss)]
        dropped = [row for row in dropped if not _feeds_next_pass(facts, row, names)]
        if len(dropped) > 1 and any(row.in_loss for row in rows):
            yield place, names, len(dropped), len(rows)


def _feeds_next_pass(facts: Facts, row: ForwardRow, names: tuple[str, ...]) -> bool:
    """Whether the next pass is on a loss of its output without a graph, as D's on fakes in turns of its own."""
    later = facts.events[facts.events.index(row) :]
    p = next((each for each in later if each.kind == "backward"), None)
    return p is not None and any(facts.is_fed_by(p, name) for name in names)


def losses_without_pass(facts: Facts, numbers: set[int]) -> list[Place]:
    """Return the lines of forward passes of these parameters, the last first, whose numbers got no backward pass."""
    rows = [row for row in facts.forwards if row.has_scalar and not (row.in_loss or row.needed)]
    return [row.place for row in reversed(rows) if numbers & row.event.sources]


def _networks_in(row: BuiltRow) -> tuple[str, ...]:
    return tuple(name for name, cell in row.cells.items() if cell in ("here", "read"))


def _is_cut_off(facts: Facts, row: BuiltRow, names: tuple[str, ...]) -> bool:
    """Whether another finding names the line that cut its output off, or the term that was read from it as a number."""
    missing = {name: facts.without_gradient.get(name) for name in names}
    told = {name for name in names if missing[name] and facts.once(passes_cut_off)[name][1]}
    told |= {name for name in names if missing[name] and missing[name] <= facts.end.written_from}
    if any(numbers <= facts.end.written_from for numbers in facts.without_gradient.values()):  # copied into these
        told |= {name for name in names if facts.parameters[name].keys() <= facts.end.written}
    lost = told.issuperset(names)
    terms = [pair[1].term for dead in facts.once(dead_terms) for pair in dead.pairs[:1] if pair[1].term.sources]
    if isinstance(row, ForwardRow):  # a dead term was computed from it, as a number or behind a `detach()`
        lost |= any(term.sources & row.event.sources for term in terms)
    lines = {place[:2] for term in terms for place in (term.place, *(place for _, place, _ in term.cuts)) if place}
    return lost or row.place[:2] in lines  # whatever the expression


def _is_needed_in_part(facts: Facts, row: BuiltRow) -> bool:
    """Whether the features of a part are needed, which a hook has taken."""
    return isinstance(row, ForwardRow) and any(facts.history.forwards[number].needed for number in row.event.inside)
