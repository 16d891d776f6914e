"""Passes that moved networks of two players."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, permutations

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import united
from gradient_audit.networks import is_leaf
from gradient_audit.places import Place
from gradient_audit.record import Pass

ONE_WAY = 0.5  # of a direction, which is between -1 and 1: a gradient moves most of an output the same way


def mixed_players(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that moved networks of two players, and the steps that added them to other passes."""
    passes = facts.passes
    crossed = [list(_groups_crossed(facts, p)) for p in passes]
    mixed: dict[tuple[str, ...], tuple[list[Place], set[str]]] = defaultdict(lambda: ([], set()))  # and who stepped
    meant: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    proved: set[tuple[str, ...]] = set()
    for key, steps in facts.steps.items():
        for summed, (numbers, place) in steps.sums.items():
            if all(crossed[number] for number in summed):  # one loss in several batches
                continue
            for p, group in ((passes[number], group) for number in sorted(summed) for group in crossed[number]):
                mine = {name for name in group if key in group[name] and numbers & facts.numbers[name].keys()}
                others = [name for name in group if key not in group[name]]
                if mine and others:
                    places, added = mixed[tuple(group)]
                    places += [p.place, place]
                    added |= mine
                    if not _may_be_meant(facts, p, summed, mine, others):
                        proved.add(tuple(group))
    for networks, (places, added) in mixed.items():
        names = joined(name for name in networks if name in added)
        text = f"`backward()` also wrote gradients into {names}. They were not cleared, so `step()` used the sum "
        text += "of two losses."
        yield finding("mixed", networks, text, places, doubtful=networks not in proved)
    told = {place for places, _ in mixed.values() for place in places}
    moved = [facts.networks_of(p.used & p.reached) for p in passes]
    order = {name: index for index, name in enumerate(facts.numbers)}
    pairs = {pair for names in {*moved} for pair in permutations(names, 2)}
    for made, judge in sorted(pairs, key=lambda pair: [order[name] for name in pair]):
        first, second = {*facts.holders_of(made)}, {*facts.holders_of(judge)}
        places = [place for place in _opposed(facts, made, judge, moved) if place not in told]
        text = f"one loss moved {made} and {judge}; another moved what {judge} says of {made}'s output the other way."
        if places and first == second:
            yield finding("opposed", (made, judge), text, places)
        elif places and not first & second:
            yield finding("mixed", (made, judge), text, places)
            told |= {*places}
    for p, groups in zip(passes, crossed, strict=True):
        for group in groups if p.place not in told else ():
            # A table beside its model, as a rule.
            if not (any(is_leaf(facts.networks[name]) for name in group) or _is_one_model(facts, group)):
                meant[tuple(group)].append(p.place)
    for networks, places in meant.items():
        text = "one `backward()` wrote gradients into {}, which have different optimizers, and both stepped on them."
        yield finding("meant?", networks, text, places)


def _groups_crossed(facts: Facts, p: Pass) -> Iterator[dict[str, set[int]]]:
    """Yield the networks of several players that a pass moved by terms with one in common, with their optimizers."""
    movers = {
        name: {optimizer for optimizer, used in p.users.items() if used & p.reached & ids.keys()}
        for name, ids in facts.numbers.items()
    }
    groups = [{name for name, optimizers in movers.items() if optimizers}]
    alike = facts.in_detail(p)
    terms = alike.terms if alike else []
    if terms:
        groups = united([{name for name, cell in term.cells.items() if cell == "used"} for term in terms])
    for group in groups:
        together = {name: movers[name] for name in facts.numbers if name in group}
        if len(united(together.values())) > 1:
            yield together


def _is_one_model(facts: Facts, group: dict[str, set[int]]) -> bool:
    """Whether these are parts of one module, with optimizers that always step together."""
    events = (event for event in facts.events if event.kind in ("step", "backward"))
    runs = [[*run] for kind, run in groupby(events, lambda event: event.kind) if kind == "step"]
    together = {frozenset(event.optimizer for event in run) & set().union(*group.values()) for run in runs}
    wholes = {facts.record.whole.get(id(facts.networks[name]), name) for name in group}
    return len(wholes) == 1 and len(together - {frozenset()}) == 1


def _may_be_meant(facts: Facts, p: Pass, summed: frozenset, mine: set[str], others: list[str]) -> bool:
    """Whether the sum of a loss that comes to the others through this player, and another one, is as in BicycleGAN."""
    alike = {number: facts.in_detail(facts.passes[number]) for number in summed}
    loss = alike[p.number]
    return (
        None not in alike.values()
        and any(facts.leads_through(loss, name, other) for name in mine for other in others)
        and not any(facts.is_fed_by(q, other) for q in alike.values() for other in others)
    )


def _opposed(facts: Facts, made: str, judge: str, moved: list[tuple[str, ...]]) -> list[Place]:
    """Return the passes that moved both, and what the judge says of the other's output against another loss of its."""
    calls = [event for event in facts.record.forwards if event.module() is facts.networks[judge]]
    fed = [event for event in calls if event.values & facts.numbers[made].keys()]
    ways: dict[tuple[Place, Place], list[float]] = defaultdict(list)  # by the lines of the pass and of the call
    both: dict[tuple[Place, Place], None] = {}
    for event in fed if len(fed) < len(calls) else ():
        for p, way in ((facts.passes[n], way) for n, way in event.directions.items() if judge in moved[n]):
            ways[p.place, event.place].append(way)
            if made in moved[p.number] and facts.leads_through(p, judge, made):
                both[p.place, event.place] = None
    up = {lines for lines, found in ways.items() if min(found) > ONE_WAY}
    down = {lines for lines, found in ways.items() if max(found) < -ONE_WAY}
    return [lines[0] for lines in both if (lines in up and down) or (lines in down and up)]
