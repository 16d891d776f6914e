"""Passes, and terms of a loss, that contribute nothing."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding
from gradient_audit.lineage import BLIND, CALL, PARAMETER, bit, numbers_in
from gradient_audit.places import Place
from gradient_audit.record import OTHER, Pass, Term


def dead_passes(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that reached nothing that is trained."""
    lost = []
    for p in facts.record.passes if facts.optimizers or facts.networks else ():  # else nothing was to be trained
        loose = {id(ref()) for ref in p.loose}
        # A gradient of a plain tensor may be read, as FGSM reads that of images.
        serves = p.reached or loose & facts.held or (p.loose and p.read)
        if p.detailed and not (p.raised or serves):
            lost.append(p.place)
    for place in dict.fromkeys(lost):
        yield finding("dead", (), "a backward pass reached no parameter of any network.", [place])


def dead_terms(facts: Facts) -> Iterator[Finding]:
    """Yield the terms that were dead in all passes of their line; keep only the terms that tell something."""
    passes = facts.record.passes
    rows: dict[tuple[Place, int, int], list[tuple[Pass, Term]]] = defaultdict(list)
    for p in passes:
        for index, term in enumerate(p.terms):
            rows[p.place, len(p.terms), index].append((p, term))
    moved = sum(bit(PARAMETER, number) for number in set().union(*(p.used for p in passes)))
    for (place, _, _), pairs in rows.items():
        constants = {term.value for _, term in pairs}
        proved = True
        if None not in constants:  # one that changes, and comes from what is trained, was cut off
            proved = any(_is_cut_loss(facts, p, term, changes=len(constants) > 1) for p, term in pairs)
            dead = (proved or len(constants) > 1) and any(term.sources & moved for _, term in pairs)
        else:
            dead = all(
                term.value is None and not term.reached & (facts.excused | p.used | {OTHER}) for p, term in pairs
            ) and any(p.users for p, _ in pairs)
        if dead:
            for _, term in pairs:
                term.dead = True
            p, term = pairs[0]
            networks = tuple(name for name in facts.numbers if p.cells[name] == "used")
            origin = f" from {term.place.where}" if term.place else ""
            name = "a term of the sum" if term.value is not None else f"`{term.name}`"
            text = f"{name}{origin} contributes no gradient to any parameter that is updated."
            cure = "" if proved else "If it is a target, a baseline or a number to print, this is right; if not, see "
            cure += "" if proved else "whether `detach()`, `no_grad()` or `.item()` cuts it off."
            places = [place, *[term.place] * bool(term.place)]
            yield finding("dead", networks, text, places, cure, doubtful=not proved)
    for p in passes:
        p.terms = [term for term in p.terms if term.value is None or term.dead]
        if len(p.terms) < 2:
            p.terms = []


def _is_cut_loss(facts: Facts, p: Pass, term: Term, *, changes: bool) -> bool:
    """Whether a constant was computed as a loss is, and without the graph that it needs.

    It is a penalty on a gradient without `create_graph`, or, if it changes, the answer under no_grad() of what moved.
    """
    calls = (facts.record.calls[number] for number in numbers_in(CALL, term.sources))
    blind = p.used & {*numbers_in(BLIND, term.sources)}
    return (changes and bool(blind)) or any(call.kind == "grad" and not call.create_graph for call in calls)
