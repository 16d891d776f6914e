"""What rules know together of gradients that no optimizer used, and of parameters that none holds."""

from collections import defaultdict
from dataclasses import dataclass, field

from gradient_audit.facts import Facts
from gradient_audit.graphs import calls_cut_off
from gradient_audit.history import Call
from gradient_audit.places import Place
from gradient_audit.terms import idle_parameters, left_out_networks
from gradient_audit.trace import Replaced


@dataclass
class Unused:
    """The gradients of a network that no optimizer used, and whose parameters none holds."""

    network: str
    wasted: dict[Place, list[tuple[Call, set[int]]]] = field(default_factory=lambda: defaultdict(list))
    lost: set[int] = field(default_factory=set)  # parameters that an optimizer held, when it stepped
    swapped: dict[int, Place] = field(default_factory=dict)  # that took the place of held ones, and where
    ownerless: set[int] = field(default_factory=set)  # others that none holds
    meant: str = ""  # why that may be on purpose: "judge", "target", "backbone", or ""

    @property
    def passes(self) -> list[Call]:
        """The passes whose gradients were not used."""
        return [p for pairs in self.wasted.values() for p, _ in pairs]


def mistaken_optimizers(facts: Facts) -> list[int]:
    """Return the optimizers that are likely to be meant for a network that gets gradients and has none.

    They hold a parameter twice, or one that another optimizer moves, and never found a gradient.
    """
    left_out = any(unused.ownerless and not unused.meant for unused in facts.once(unused_gradients))
    held = {key: facts.held_by(key) for key in facts.steps if left_out}
    twice = [key for key, numbers in held.items() if len({*numbers}) < len(numbers)]
    bare = [key for key, numbers in held.items() if not facts.steps[key].moved_parameters]
    return twice or [key for key in bare if facts.moved_parameters & {*held[key]}]


def unjudged_passes(facts: Facts) -> list[Call]:
    """Return the passes whose gradients nothing read, on parameters that no optimizer holds, without a step.

    What steps on these is of no kind that the audit sees, or there is nothing.
    """
    known = facts.owned | facts.moved_parameters | facts.owned_in_steps
    passes = [p for p in facts.passes if p.reached and not (p.reached & known or p.raised or p.read or p.users)]
    return [p for p in passes if p.place not in facts.read_lines | facts.handed_lines]


def unused_gradients(facts: Facts) -> list[Unused]:
    """Return, for each network, what was computed for it and not used."""
    reached = set().union(*(p.reached for p in facts.passes if p.place not in facts.handed_lines))
    used = set().union(*(p.used for p in facts.passes))
    steps = (row for row in facts.history.rows if row.kind == "step")
    replaced = set().union(*(row.sums.get(frozenset(), ()) for row in steps))  # by a gradient of no known pass
    swaps: dict[int, Place] = {}
    for event in facts.of(Replaced):
        if event.old & (facts.owned | swaps.keys()):
            if event.old & swaps.keys() & reached:  # again and again, as where clipping makes new ones
                reached |= event.new
            swaps |= dict.fromkeys(event.new, event.place)
    found = []
    for network, ids in facts.parameters.items():
        unused = Unused(network)
        _add_wasted(facts, unused, replaced)
        left = set().union(*(numbers for pairs in unused.wasted.values() for _, numbers in pairs))
        unused.lost = (facts.owned_in_steps & left) - facts.owned
        # Not stepped by hand, either.
        ownerless = (ids.keys() & reached).difference(facts.owned, facts.moved_parameters, used)
        unused.swapped = {number: swaps[number] for number in ownerless & swaps.keys()}
        ownerless -= unused.lost | unused.swapped.keys()
        if facts.optimizers and not replaced:  # without any optimizer, no parameter is expected to have one
            unused.ownerless = ownerless
        unused.meant = _meaning(facts, unused)
        found.append(unused)
    return found


def _add_wasted(facts: Facts, unused: Unused, replaced: set[int]) -> None:
    lent = facts.lent_lines | {p.place for p in facts.passes if replaced and not p.split}
    skipped, excused = facts.history.ledger.skipped, facts.once(idle_parameters)
    cleared = facts.without_gradient.get(unused.network, set())  # before each step: `unreached` tells
    cut_off, unjudged = facts.once(calls_cut_off), {*facts.once(unjudged_passes)}
    for p, later in zip(facts.passes, [*facts.passes[1:], None], strict=False):
        is_watched = p.split and later and p.detail == later.detail  # so that a copy of its gradients was seen
        is_copied = "copied" in p.read if is_watched else p.place in facts.handed_lines
        # Of a pass whose hooks computed what the step used instead, as the norms of samples, nothing is wasted.
        own = replaced if p.began.hooked else ()
        numbers = (p.reached & facts.parameters[unused.network].keys()).difference(excused, p.used, own, cleared)
        explained = p.raised or (p in cut_off and not p.used) or p in unjudged or p.number in skipped
        if numbers and not (explained or is_copied or p.place in lent):
            unused.wasted[p.place].append((p, numbers))


def _meaning(facts: Facts, unused: Unused) -> str:
    """Return what a network may be that no optimizer holds, or only in part."""
    if not (unused.ownerless and unused.wasted):
        return ""
    ids = facts.parameters[unused.network]
    # A gradient that comes to it through a network that an optimizer holds comes to a part, no judge.
    trained = [name for name in facts.networks_of(facts.owned) if name != unused.network]
    to_train = any(facts.leads_through(p, name, unused.network) for p in unused.passes for name in trained)
    passes = {*unused.passes, *facts.once(unjudged_passes)}  # those of a loss of its own may be unjudged
    to_train |= any(p.reached <= ids.keys() for p in passes)
    left_out = unused.network in facts.once(left_out_networks)
    if not (ids.keys() & facts.owned or to_train or left_out):
        leads_on = any(facts.leads_on(p, unused.network) for p in unused.passes)
        return "judge" if leads_on else "target"
    first_layers = _are_first_layers(facts, ids, unused.ownerless)
    return "backbone" if first_layers or facts.networks[unused.network].kind == "Embedding" else ""


def _are_first_layers(facts: Facts, names: dict[int, str], ownerless: set[int]) -> bool:
    """Whether these are the first layers of a network, an optimizer holds later ones, and no `inputs=` names them.

    A parameter beside trained layers, as the scale of logits, is no layer.
    """
    layers = [(number, name.rpartition(".")[0]) for number, name in names.items()]
    trained = [layer for number, layer in layers if number in facts.owned]
    own = {layer for number, layer in layers if number in ownerless}
    if all(any(not layer or each.startswith(f"{layer}.") for each in trained) for layer in own):
        return False
    first = next((index for index, (number, _) in enumerate(layers) if number in facts.owned), 0)
    before = {number: layer for number, layer in layers[:first] if layer not in trained}
    named = set().union(*(p.began.named for p in facts.passes))
    return before.keys() >= ownerless and not ownerless & named
