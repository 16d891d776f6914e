"""What rules know together of passes that move networks of several optimizers, or of one against each other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations

from gradient_audit.facts import Facts
from gradient_audit.findings import Sentence
from gradient_audit.history import Call
from gradient_audit.places import Place

ONE_WAY = 0.5  # of a direction, which is between -1 and 1: a gradient moves most of an output the same way
Group = dict[str, set[int]]  # networks that one loss moved, each with the optimizers that stepped on it


@dataclass
class Mixture:
    """A step used the sum of a pass for several networks and of other passes."""

    places: list[Place] = field(default_factory=list)
    added_to: set[str] = field(default_factory=set)  # the networks whose gradients were a sum
    proved: bool = False


def united(sets: Iterable[set]) -> list[set]:
    """Unite the sets that have an element in common; leave out empty ones."""
    groups: list[set] = []
    for one in filter(None, sets):
        apart = [group for group in groups if not group & one]
        groups = [*apart, one.union(*(group for group in groups if group & one))]
    return groups


def crossed_groups(facts: Facts) -> dict[int, list[Group]]:
    """Return, by pass, the networks of several optimizers that it moved by terms with one in common."""
    return {p.number: [*_groups_of(facts, p)] for p in facts.passes}


def _groups_of(facts: Facts, p: Call) -> Iterator[Group]:
    movers = {
        name: {optimizer for optimizer, used in p.users.items() if used & p.reached & ids.keys()}
        for name, ids in facts.parameters.items()
    }
    groups = [{name for name, optimizers in movers.items() if optimizers}]
    if terms := facts.in_detail(p).terms:
        groups = united([{name for name, cell in row.cells.items() if cell == "used"} for row in terms])
    for group in groups:
        together = {name: movers[name] for name in facts.parameters if name in group}
        if len(united(together.values())) > 1:
            yield together


def mixtures(facts: Facts) -> dict[tuple[str, ...], Mixture]:
    """Return the sums that steps used of passes for several networks and of others, by the networks."""
    crossed, calls = facts.once(crossed_groups), facts.history.calls
    found: dict[tuple[str, ...], Mixture] = defaultdict(Mixture)
    for key, steps in facts.steps.items():
        for summed, (numbers, place) in steps.sums.items():
            alike = [*map(calls.get, summed)]
            common = set.intersection(*({*facts.networks_of(q.used & q.reached)} for q in alike))
            for p, group in ((calls[number], group) for number in sorted(summed) for group in crossed[number]):
                mine = {name for name in group if key in group[name] and numbers & facts.parameters[name].keys()}
                others = [name for name in group if key not in group[name] and name not in common]
                proved = [_is_stranger(facts, p, alike, mine, other, group) for other in others if mine]
                if {*proved} - {None}:
                    mixture = found[tuple(group)]
                    mixture.places += [p.place, place]
                    mixture.added_to |= mine
                    mixture.proved |= True in proved
    return dict(found)


def summed_lines(facts: Facts) -> dict[tuple[int, Place], set[Place]]:
    """Return, by optimizer and line of a pass, the lines of those whose sum with it a step used."""
    lines: dict[tuple[int, Place], set[Place]] = defaultdict(set)
    for key, steps in facts.steps.items():
        for summed in {frozenset(facts.history.calls[number].place for number in sums) for sums in steps.sums}:
            for place in summed:
                lines[key, place] |= summed
    return lines


def _is_stranger(facts: Facts, p: Call, alike: list[Call], mine: set[str], other: str, group: Group) -> bool | None:
    """Whether a pass was for the other network, and not for this player, whose step used it in a sum.

    None: it may be for both. False: likewise, but one asks. alike: the passes of the sum.
    """
    if _is_of_gradients(facts, p.place, {*mine, other}):
        return None
    if any(facts.leads_through(p, name, other) for name in mine):  # BicycleGAN: to the other through this player
        detailed = [facts.in_detail(q) for q in alike]
        return any(facts.is_fed_by(q, other) or not q.split for q in detailed)
    behind = [name for name in mine if facts.leads_through(p, other, name)]  # as the encoder behind its decoder
    # D is run on real images, too, or a loss of this player's own goes through it and does not move it.
    together = set().union({p.place}, *(facts.once(summed_lines)[key, p.place] for key in group[other]))
    beside = set().union(*(facts.parameters[name].keys() for name in group if name != other))
    apart = any(
        module == facts.networks[other].module and not reached & beside
        for q in map(facts.last_split.get, together & facts.last_split.keys())
        for _, module, reached in q.began.outputs
    )
    spared = (q for q in alike if not q.used & facts.parameters[other].keys())
    apart |= any(facts.leads_through(q, other, name) for q in spared for name in behind)
    return True if apart or not behind else None


def _is_of_gradients(facts: Facts, place: Place, names: set[str]) -> bool:
    """Whether a line's loss was computed from the gradients of all these, as consensus optimization's regulariser."""
    lines = set().union(*(p.derived_from for p in facts.passes if p.place == place))
    reached = set().union(*(p.reached for p in facts.passes if p.place in lines))
    return names <= {*facts.networks_of(reached)}


def oppositions(facts: Facts) -> dict[bool, list[Sentence]]:
    """Return what is said of networks that are moved against each other, by whether one optimizer holds them."""
    explained = {place for mixture in facts.once(mixtures).values() for place in mixture.places}
    moves = {p.number: facts.networks_of(p.used & p.reached) for p in facts.passes}
    order = {name: index for index, name in enumerate(facts.parameters)}
    pairs = {pair for names in {*moves.values()} for pair in permutations(names, 2)}
    found: dict[bool, list[Sentence]] = {True: [], False: []}
    for made, judge in sorted(pairs, key=lambda pair: [order[name] for name in pair]):
        first, second = {*facts.holders_of(made)}, {*facts.holders_of(judge)}
        places = [place for place in _opposed_places(facts, made, judge, moves) if place not in explained]
        if places and (first == second or not first & second):
            text = f"one loss moved {made} and {judge}; another moved what {judge} says of {made}'s output "
            found[first == second].append(Sentence(f"{text}the other way.", (made, judge), places))
            explained |= set() if first == second else {*places}
    return found


def _opposed_places(facts: Facts, made: str, judge: str, moves: dict[int, tuple[str, ...]]) -> list[Place]:
    """Return the passes that moved both, and what the judge says of the other's output against another loss of its."""
    calls = [row for row in facts.forwards if row.event.module == facts.networks[judge].module]
    on_fakes = [row for row in calls if row.event.sources & facts.parameters[made].keys()]
    moving = [row for row in on_fakes if not row.event.is_frozen]  # the judge, too
    ways: dict[tuple[Place, Place], list[float]] = defaultdict(list)  # by the lines of the pass and of the call
    both: dict[tuple[Place, Place], None] = {}
    for row in moving if len(on_fakes) < len(calls) else ():
        for number, way in row.directions.items():
            p = facts.history.calls[number]
            if judge in moves[number]:
                ways[p.place, row.place].append(way)
                if made in moves[number] and facts.leads_through(p, judge, made):
                    both[p.place, row.place] = None
    up = {lines for lines, found in ways.items() if min(found) > ONE_WAY}
    down = {lines for lines, found in ways.items() if max(found) < -ONE_WAY}
    places = [lines[0] for lines in both if (lines in up and down) or (lines in down and up)]
    return [place for place in places if not _is_of_gradients(facts, place, {made, judge})]
