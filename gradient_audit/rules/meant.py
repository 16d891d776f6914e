"""A loss that moved networks of different optimizers."""

from collections import defaultdict
from collections.abc import Iterator

from gradient_audit.facts import Facts
from gradient_audit.findings import LIMIT, Sentence
from gradient_audit.places import Place
from gradient_audit.players import crossed_groups, mixtures, oppositions, summed_lines

KIND = "meant?"
RANK = 130
SEVERITY = "question"
MEANING = """One `backward()` moved networks of different optimizers, of which another one moved some alone, for another
step."""
CURE = f"If this loss is for all of them, as an autoencoder's is, this is right. If not: {LIMIT}."
MISTAKES = ("d-steps-on-g-loss",)
EXHIBITS = ("clean/head_alone_then_with_encoder.py", "clean/vae_two_optimizers.py")


def find(facts: Facts) -> Iterator[Sentence]:
    """Yield the networks that one pass moved and another one apart; not those of which `mixed` tells."""
    explained = {place for mixture in facts.once(mixtures).values() for place in mixture.places}
    explained.update(*(sentence.places for sentence in facts.once(oppositions)[False]))
    crossed = facts.once(crossed_groups)
    places: dict[tuple[str, ...], dict[Place, None]] = defaultdict(dict)
    for p in facts.passes:
        for group in crossed[p.number] if p.place not in explained else ():
            places[tuple(group)][p.place] = None
    text = "one `backward()` wrote gradients into {}, which have different optimizers, and both stepped on them."
    for networks, lines in places.items():
        # A table beside its model, as a rule.
        has_table = any(facts.networks[name].kind == "parameter" for name in networks)
        if apart := [place for place in lines if not has_table and _are_moved_apart(facts, place, {*networks})]:
            yield Sentence(text, networks, apart)


def _are_moved_apart(facts: Facts, place: Place, group: set[str]) -> bool:
    """Whether another pass moved some of these alone, and not for a sum, of which `mixed` would tell."""
    beside = set().union(*(facts.once(summed_lines)[key, place] for key in facts.steps))
    moves = (group & {*facts.networks_of(p.used & p.reached)} for p in facts.passes if p.place not in beside)
    return any(moved and moved < group for moved in moves)
