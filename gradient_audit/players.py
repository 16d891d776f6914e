"""Passes that moved networks of two players."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import Finding, joined
from gradient_audit.graph import united
from gradient_audit.networks import is_leaf
from gradient_audit.places import Place
from gradient_audit.record import Forward, Pass


def mixed_players(facts: Facts) -> Iterator[Finding]:
    """Yield the passes that moved networks of two players, and the steps that added them to other passes."""
    passes = facts.record.passes
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
    for (made, judge), place in _judges_moved(facts, told).items():
        same = facts.holders_of(made) == facts.holders_of(judge)
        text = f"one backward pass moved {made} and {judge}, and another {judge} alone on what {made} computed."
        told |= set() if same else {place}
        yield finding("meant?" if same else "mixed", (made, judge), text, [place])
    for made, judge in permutations(facts.numbers, 2):
        fed, others = _calls_of(facts, judge, made)
        ways = [(way, passes[n]) for event in fed for n, way in event.directions.items()]
        ways = [(way, p.place) for way, p in ways if facts.leads_through(p, judge, made)]
        same = facts.holders_of(made) and facts.holders_of(made) == facts.holders_of(judge)
        if same and others and ways and min(ways)[0] < -0.5 < 0.5 < max(ways)[0]:
            text = f"one loss moves what {judge} says of {made}'s output up, another one down, under one optimizer."
            yield finding("opposed", (made, judge), text, [place for _, place in ways])
    for p, groups in zip(passes, crossed, strict=True):
        for group in groups if p.place not in told else ():
            if not any(is_leaf(facts.networks[name]) for name in group):  # a table beside its model, as a rule
                meant[tuple(group)].append(p.place)
    for networks, places in meant.items():
        text = "one `backward()` wrote gradients into {}, which have different optimizers, and both stepped on them."
        yield finding("meant?", networks, text, places)


def _groups_crossed(facts: Facts, p: Pass) -> Iterator[dict[str, set[int]]]:
    """Yield the groups of networks of several players that a pass moved together, with the optimizers of each.

    Terms of a loss that share no network are not together.
    """
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


def _may_be_meant(facts: Facts, p: Pass, summed: frozenset, mine: set[str], others: list[str]) -> bool:
    """Whether a step on the sum of a loss for both players and another one may be meant, as in BicycleGAN.

    The loss goes to the others through the player that stepped, as a decoder's does to the encoder. And no other
    pass is of that player alone on what the others computed, without a graph to them, as D's on detached fakes.
    """
    alike = {number: facts.in_detail(facts.record.passes[number]) for number in summed}
    loss = alike[p.number]
    return (
        None not in alike.values()
        and any(facts.leads_through(loss, name, other) for name in mine for other in others)
        and not any(facts.is_fed_by(q, other) for q in alike.values() for other in others)
    )


def _judges_moved(facts: Facts, told: set[Place]) -> dict[tuple[str, str], Place]:
    """Return the networks that a pass moved through a judge, with this judge, and where, if that is not told already.

    Another pass moved the judge alone, on what the network computed, without a graph. They share all optimizers or
    none.
    """
    found: dict[tuple[str, str], Place] = {}
    moved = [(p, {*facts.networks_of(p.used & p.reached)}) for p in facts.record.passes]
    for made, judge in permutations(facts.numbers, 2):
        first, second = {*facts.holders_of(made)}, {*facts.holders_of(judge)}
        both = [p for p, names in moved if {made, judge} <= names and p.place not in told]
        alone = [p for p, names in moved if judge in names and facts.is_fed_by(p, made)] if both else []
        for p in both:
            apart = not first & second and _are_opposed(facts, p, alone, made, judge)
            if (apart or (alone and first == second)) and facts.leads_through(p, judge, made):
                found[made, judge] = p.place
    return found


def _calls_of(facts: Facts, judge: str, made: str) -> tuple[list[Forward], list[Forward]]:
    """Return the forward passes of a judge on what another network computed, and the others."""
    calls = [event for event in facts.record.forwards if event.module() is facts.networks[judge]]
    ids = facts.numbers[made].keys()
    return [event for event in calls if event.values & ids], [event for event in calls if not event.values & ids]


def _are_opposed(facts: Facts, p: Pass, alone: list[Pass], made: str, judge: str) -> bool:
    """Whether a pass moves what the judge says of another network's output up, and those of the judge alone down."""
    calls, _ = _calls_of(facts, judge, made)
    up = [event.directions[p.number] for event in calls if p.number in event.directions]
    down = [event.directions[q.number] for q in alone for event in calls if q.number in event.directions]
    return bool(up and down) and all(one * other < -0.25 for one in up for other in down)
