"""Passes, terms of a loss and graphs that contribute nothing, and gradients that nothing averages."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from torch import nn

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding, joined
from gradient_audit.lineage import BLIND, CALL, NUMBER, PARAMETER, bit, numbers_in
from gradient_audit.places import Place, expression_place
from gradient_audit.record import OTHER, Built, Pass, Term
from gradient_audit.uses import idle_parameters

LATER = 2  # steps of each optimizer, after which a graph is kept; the loop's own variables hold one for one step
ZERO = (
    "If a ReLU or a mask holds it back, or it is constant, this is right; if not, see whether a value is taken from "
    "itself: a straight-through estimator is `x - q.detach()`."
)

FLAT = (
    "If a ReLU or a mask holds them back, this is right; if not, see what in the forward pass has no slope, as "
    "`round()` and `sign()` have none: a straight-through estimator is `x + (x.round() - x).detach()`."
)


def dead_passes(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that reached nothing that is trained."""
    for p in facts.passes if facts.optimizers or facts.networks else ():  # else nothing was to be trained
        loose = {id(ref()) for ref in p.loose}
        # A gradient of a plain tensor may be read, as FGSM reads that of images.
        serves = p.reached or loose & facts.held or (p.loose and p.place in facts.read)
        if p.detailed and not (p.raised or serves):
            cut = [place for mistake, place in p.cuts if mistake == "loss-rebuilt" and p.loose][-1:]
            cure = "Join losses with `torch.stack()`, without `.item()` and `requires_grad=True`." if cut else ""
            text, mistake = "a backward pass reached no parameter of any network.", "loss-made-leaf" if cut else ""
            yield finding("dead", (), text, [*cut, p.place], cure, mistake=mistake)


def dead_rows(facts: Facts) -> Iterator[tuple[list[tuple[Pass, Term]], bool]]:
    """Yield the terms that were dead in all passes of their line, each with its passes, and whether that is proved."""
    rows: dict[tuple[Place, int, int], list[tuple[Pass, Term]]] = defaultdict(list)
    for p in facts.passes:
        for index, term in enumerate(p.terms):
            rows[p.place, len(p.terms), index].append((p, term))
    used = set().union(*(p.used for p in facts.passes))
    moved = sum(bit(kind, number) for number in used for kind in (PARAMETER, NUMBER))
    for pairs in rows.values():
        constants = {term.value for _, term in pairs}
        if None not in constants:  # one that changes, and comes from what is trained, was cut off
            proved = any(_is_cut_loss(facts, p, term, changes=len(constants) > 1) for p, term in pairs)
            if (proved or len(constants) > 1) and any(term.sources & moved for _, term in pairs):
                yield pairs, proved
        elif all(term.value is None for _, term in pairs) and _moves_nothing(facts, pairs):
            yield pairs, True


def ids_of_dead_terms(facts: Facts) -> set[int]:
    """Return the terms that `dead_rows` yields, by id."""
    return {id(term) for pairs, _ in dead_rows(facts) for _, term in pairs}


def _moves_nothing(facts: Facts, pairs: list[tuple[Pass, Term]]) -> bool:
    """Whether a term with a graph reaches nothing that a step used, in passes of which one was used."""
    alive = idle_parameters(facts) | {OTHER}.union(*(term.reached for _, term in pairs)) - facts.inside.keys()
    goes_on = any(term.node in q.nodes for p, term in pairs for q in facts.passes if q is not p)
    has_a_turn = any(_has_a_turn(p, term, q) for p, term in pairs[-1:] for q in facts.passes)
    moves = goes_on or has_a_turn or any(term.reached & (alive | p.used) for p, term in pairs)
    return not moves and any(p.users for p, _ in pairs)


def still_layers(facts: Facts) -> Iterator[Finding]:
    """Yield the first layers of a network whose gradient was exactly zero at every step, unless a weight was zero."""
    steps = [  # each with what it used, and what of that was zero
        (event.place, set().union(*event.taken.values()), event.still)
        for event in facts.events
        if event.kind == "step" and event.still is not None
    ]
    weightless = set().union(*(term.reached for p in facts.passes for term in p.terms if term.weightless))
    for network, ids in facts.numbers.items():
        of_it = [(place, used, zero) for place, used, zero in steps if used & ids.keys()]
        stepped = [number for number in ids if any(number in used for _, used, _ in of_it)]
        still = {number for number in stepped if all(number in zero for _, used, zero in of_it if number in used)}
        if len(of_it) > 1 and still and still == {*stepped[: len(still)]} and not still & weightless:
            text = f"{facts.count_of(still, network)} of {{}} had a gradient of exactly zero at every step."
            yield finding("unreached", (network,), text, [place for place, *_ in of_it], FLAT, doubtful=True)


def left_out_networks(facts: Facts) -> set[str]:
    """Return the networks that no optimizer holds, and to which alone a dead term leads: that is told of them."""
    return {
        name
        for pairs, _ in dead_rows(facts)
        for name in facts.networks_of(pairs[0][1].reached)
        if not facts.numbers[name].keys() & (facts.owned | facts.fed) and facts.optimizers
    }


def dead_terms(facts: Facts) -> Iterator[Finding]:
    """Yield the terms that move nothing, but those of networks that are left out of the optimizers."""
    left_out = left_out_networks(facts)
    for pairs, proved in dead_rows(facts):
        p, term = pairs[0]
        if {*facts.networks_of(term.reached)} & left_out:
            continue
        networks = tuple(name for name in facts.numbers if p.cells[name] == "used")
        origin = f" from {term.place.where}" if term.place else ""
        name = "a term of the sum" if term.value is not None else f"`{term.name}`"
        text = f"{name}{origin} contributes no gradient to any parameter that is updated."
        cure = "" if proved else "If it is a target, a baseline or a number to print, this is right; if not, see "
        cure += "" if proved else "whether `detach()`, `no_grad()` or `.item()` cuts it off."
        places = [p.place, *[term.place] * bool(term.place)]
        yield finding("dead", networks, text, places, cure, doubtful=not proved)


def zero_terms(facts: Facts) -> Iterator[Finding]:
    """Yield the terms that lead to what is trained, with a gradient of exactly zero whenever that was measured."""
    rows: dict[tuple, list[tuple[Pass, set[int], Term]]] = defaultdict(list)
    for p in facts.passes:
        for index, term in enumerate(p.terms):
            moved = p.used & term.reached
            if term.measured and moved and not term.at_zero:
                rows[p.place, len(p.terms), index].append((p, moved, term))
    for measured in rows.values():
        p, moved, term = measured[0]
        zero = (t.measured.get(n) == (0, 0) and not t.weightless for _, numbers, t in measured for n in numbers)
        if len(measured) > 1 and all(zero):
            origin = f" from {term.place.where}" if term.place else ""
            text = f"`{term.name}`{origin} gives {{}} a gradient of exactly zero, each time that it was measured."
            places = [p.place, *[term.place] * bool(term.place)]
            yield finding("dead", facts.networks_of(moved), text, places, ZERO, doubtful=True)


def _has_a_turn(p: Pass, term: Term, other: Pass) -> bool:
    """Whether the other pass is of the same sum of terms, for another network's step, and this term moves that one."""
    same = [(t.name, t.reached) for t in p.terms] == [(t.name, t.reached) for t in other.terms]
    return same and bool(term.reached & other.used) and not p.used & other.used


def _is_cut_loss(facts: Facts, p: Pass, term: Term, *, changes: bool) -> bool:
    """Whether a constant is a loss cut off: a penalty without `create_graph`, or one that changes, under no_grad()."""
    calls = (facts.record.calls[number] for number in numbers_in(CALL, term.sources))
    blind = p.used & {*numbers_in(BLIND, term.sources)}
    return (changes and bool(blind)) or any(call.kind == "grad" and not call.create_graph for call in calls)


def unused_graphs(facts: Facts) -> Iterator[Finding]:
    """Yield the lines whose graphs were built and dropped; of a function that is needed elsewhere, its caller."""
    built = [
        (names, event)
        for event in facts.events
        if isinstance(event, Built)
        and (names := tuple(name for name, cell in event.cells.items() if cell in ("here", "read")))
    ]
    needed = {(names, caller) for names, event in built if event.needed for caller in event.callers}
    lines: dict[tuple[Place, str], list[tuple[tuple[str, ...], Built]]] = defaultdict(list)
    for names, event in built:
        useless = [caller for caller in event.callers if (names, caller) not in needed]
        tried = any(code.co_name == "__init__" for code, *_ in event.callers)  # to see the shapes
        in_part = any(part.needed for part in getattr(event, "parts", ()))  # that of features which a hook has taken
        if event.gone and useless and not (tried or in_part):
            place = event.place if useless[0] == event.callers[0] else expression_place(*useless[0])
            lines[place, event.kind].append((names, event))
    for (place, kind), pairs in lines.items():
        times = Counter(name for names, _ in pairs for name in names)
        what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
        names = [name for name in facts.numbers if name in times]
        text = f"{what} {joined(names)} built a graph that no backward pass came through, {max(times.values())}x."
        # Where the value went on into a loss, as fakes for D do, a number on the way is no loss.
        fed = any(facts.is_fed_by(p, name) for p in facts.passes for name in names)
        lost = kind == "grad" or (not fed and any(event.scalar and not event.in_loss for _, event in pairs))
        yield finding("unused" if lost else "graph", names, text, [place])
    for place, times in facts.record.dropped.items():
        text = f"what this call returns, a number for each sample, is used nowhere, {times}x; another call's is a loss."
        yield finding("unused", (), text, [place])
    if facts.record.grown:
        text = "parameters were written to with a graph, which grows with each write and holds its memory."
        cure = "Write to them under `torch.no_grad()`."
        yield finding("graph", (), text, facts.record.grown, cure)


def kept_graphs(facts: Facts) -> Iterator[Finding]:
    """Yield the lines whose graphs live on after two more steps of each optimizer, or one where the audit ends then."""
    steps: Counter[int] = Counter(dict.fromkeys(facts.steps, 0))  # after an event, by optimizer
    lines: dict[tuple[Place, str], list[tuple[int, Built]]] = defaultdict(list)  # the newest event first
    for event in reversed(facts.events):
        if event.kind == "step":
            steps[event.optimizer] += 1
        elif event.kind in ("forward", "backward"):
            lines[event.place, event.kind].append((min(steps.values(), default=0), event))
    for (place, kind), events in lines.items():
        newest, oldest = events[0][0], events[-1][0]
        least = newest + (1 if oldest < min(steps.values(), default=0) else LATER)
        old = [event for age, event in events if age >= least and event.graph and not event.gone]
        if kind == "forward":  # that of a loss is told with its loss
            old = [event for event in old if event.in_loss is None or event.in_loss.gone]
        if old:
            networks = [name for name, cell in old[0].cells.items() if cell != "-"]
            text = f"a graph that this line built is still alive after later steps, {len(old)}x."
            passes = [event if isinstance(event, Pass) else event.in_loss for event in old]
            keepers = [expression_place(*p.keeper) for p in passes if p and p.keeper][-1:]
            if keepers:
                text = f"a graph of {place.where} goes on through this line, and is still alive after later steps."
            yield finding("kept", networks, text, [*keepers, place])


def retained_graphs(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that kept their graphs for another one, which did not come."""
    calls = facts.record.calls
    lines: dict[Place, list[bool]] = defaultdict(list)
    for number, p in enumerate(calls, 1):
        if p.keeps and not p.create_graph:
            lines[p.place].append(any(p.nodes & later.nodes for later in calls[number:]))
    whole = facts.ended and facts.passes and facts.passes[-1].detailed
    for place, needed in lines.items():
        if not any(needed) and (whole or len(needed) > 1):
            yield finding("retained", (), "`retain_graph` kept a graph that no later pass came through.", [place])


def late_freezing(facts: Facts) -> Iterator[Finding]:
    """Yield the networks that were frozen between the forward and the backward pass."""
    for p in facts.passes:
        for name in facts.networks_of(p.late):
            text = "{} was frozen after its forward pass: this pass computed its gradients and dropped them."
            yield finding("late", (name,), text, [p.place])


def unaveraged_networks(facts: Facts) -> Iterator[Finding]:
    """Yield the networks in DistributedDataParallel that got gradients without its forward pass."""
    called = {id(event.module()) for event in facts.record.forwards if event.module}
    for network, module in facts.networks.items():
        passes = [p for p in facts.passes if p.detailed and p.reached & facts.numbers[network].keys()]
        if isinstance(module, nn.parallel.DistributedDataParallel) and passes and id(module) not in called:
            text = f"{network} got gradients without a forward pass of its own, so nothing averages them."
            yield finding("unaveraged", (network,), text, [p.place for p in passes])
