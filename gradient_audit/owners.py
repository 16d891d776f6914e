"""Who holds what, and who moves whom: passes for two players, parameters without an optimizer, gradients unused."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, permutations

from torch import nn

from gradient_audit.facts import Facts
from gradient_audit.findings import KINDS, LIMIT, Finding, finding, joined
from gradient_audit.graph import tensors_in, united
from gradient_audit.networks import is_leaf
from gradient_audit.places import Place
from gradient_audit.record import Pass
from gradient_audit.uses import idle_parameters, left_out_networks

ONE_WAY = 0.5  # of a direction, which is between -1 and 1: a gradient moves most of an output the same way
ACCUMULATE = "To accumulate gradients over batches, call `zero_grad()` only after a step; if they are not wanted, "
ACCUMULATE += "as of a batch that is skipped, this is right."
COPIED = "The script writes others to them. Compute a target or an average under `torch.no_grad()`; if another network "
COPIED += "makes them, `.data =` cuts that off: `torch.func.functional_call()` takes them with their graph."


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
    if terms := facts.in_detail(p).terms:
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
    wholes = {id(facts.record.whole.get(id(facts.networks[name]), name)) for name in group}
    return len(wholes) == 1 and len(together - {frozenset()}) == 1


def _may_be_meant(facts: Facts, p: Pass, summed: frozenset, mine: set[str], others: list[str]) -> bool:
    """Whether the sum of a loss that comes to the others through this player, and another one, is as in BicycleGAN."""
    alike = [facts.in_detail(facts.passes[number]) for number in summed]
    through = any(facts.leads_through(p, name, other) for name in mine for other in others)
    fed = any(facts.is_fed_by(q, other) for q in alike for other in others)
    return all(q.detailed for q in alike) and through and not fed


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


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield what no optimizer holds, and the gradients that none used."""
    reached, used = set().union(*(p.reached for p in facts.passes)), set().union(*(p.used for p in facts.passes))
    # What had a gradient of no known pass in a step.
    replaced = set().union(*(event.taken.get(frozenset(), ()) for event in facts.events if event.kind == "step"))
    handed = facts.handed | {p.place for p in facts.passes if replaced and not p.detailed}
    excused, left_out = idle_parameters(facts), left_out_networks(facts)
    swaps = {new: place for new, (place, old) in facts.record.replaced.items() if old & facts.owned}
    for network, ids in facts.numbers.items():
        wasted: dict[Place, list[tuple[Pass, set[int]]]] = defaultdict(list)
        for p in facts.passes:
            # Of a pass whose hooks computed what the step used instead, as the norms of samples, nothing is wasted.
            unused = (p.reached & ids.keys()).difference(excused, p.used, replaced if p.hooked else ())
            if unused and not (p.raised or p.place in handed or p.number in facts.record.ledger.skipped):
                wasted[p.place].append((p, unused))
        left = set().union(*(unused for pairs in wasted.values() for _, unused in pairs))
        if lost := (facts.record.held & left) - facts.owned:
            text = f"{facts.count_of(lost, network)} of {{}} are no longer held by the optimizer that stepped on them."
            cure = "See what changes its `param_groups`; a generator there, as `network.parameters()`, is used up once."
            yield finding("ownerless", (network,), text, wasted, cure)
        ownerless = (ids.keys() & reached).difference(facts.owned, facts.fed, used)  # not stepped by hand, either
        if swapped := {n: swaps[n] for n in ownerless & swaps.keys()}:
            count = facts.count_of({*swapped}, network)
            text = f"{count} of {{}} are held by no optimizer; one holds those whose place they took."
            cure = "Make the optimizer after this line, or give it the new ones with `add_param_group()`."
            yield finding("ownerless", (network,), text, [*swapped.values(), *wasted], cure)
        told = lost | swapped.keys()
        ownerless -= told
        # Without any optimizer, no parameter is expected to have one.
        if ownerless and facts.optimizers and not replaced:
            told |= ownerless
            yield _ownerless(facts, network, ownerless, wasted, left_out=network in left_out)
        for place, pairs in wasted.items():
            if numbers := set().union(*(unused for _, unused in pairs)) - told:
                count = facts.count_of(numbers, network)
                text = f"{count} of {{}} got gradients that no optimizer used, {len(pairs)}x."
                if wiped := _wiped(facts, [p for p, _ in pairs], numbers):
                    text += " This line clears them before a step."
                    yield finding("wasted", (network,), text, [wiped, place], ACCUMULATE, doubtful=True)
                else:
                    yield finding("wasted", (network,), text, [place], _cure_of_waste(facts, network, pairs))


def _wiped(facts: Facts, passes: list[Pass], numbers: set[int]) -> Place | None:
    """Return the line that clears what passes of a line gave, all of it, and more often than a step uses it."""
    place = passes[0].place
    others = [p for p in facts.passes if p.place == place and p.used & numbers]
    often = len(passes) > max(1, len(others)) and numbers & facts.fed and place not in facts.read
    lines = set()
    for p in passes if often and not any(p.users for p in passes) else ():
        after = (e for e in facts.events[facts.events.index(p) + 1 :] if e.kind in ("zero_grad", "step", "backward"))
        event = next(after, None)
        lines.add(event.place if event and event.kind == "zero_grad" and event.reached & numbers else None)
    return lines.pop() if len(lines) == 1 else None


def _ownerless(facts: Facts, network: str, ownerless: set[int], wasted: dict, *, left_out: bool) -> Finding:
    """Return the finding for parameters that no optimizer holds: of a judge, or of first layers, it is waste."""
    ids, cure, places = facts.numbers[network], "", [*wasted]
    judged = [p for pairs in wasted.values() for p, _ in pairs]
    # A gradient that comes to it through a network that an optimizer holds comes to a part, no judge.
    trained = [name for name in facts.networks_of(facts.owned) if name != network]
    to_train = any(facts.leads_through(p, name, network) for p in judged for name in trained)
    to_train |= any(p.reached <= ids.keys() for p in judged)
    text = f"{facts.count_of(ownerless, network)} of {{}} are held by no optimizer."
    if wasted and not ids.keys() & facts.owned and not to_train and not left_out:
        text = f"no optimizer holds {{}}, which gets gradients, {len(judged)}x."
        if not any(facts.leads_on(p, network) for p in judged):  # a target
            calls = [event for event in facts.record.forwards if event.module() is facts.networks[network]]
            places = [event.place for event in calls if event.in_loss] or places
            cure = "Compute it under `torch.no_grad()`, or freeze the network, `network.requires_grad_(False)`."
    elif not (wasted and (_is_backbone(facts, ids, ownerless) or type(facts.networks[network]) is nn.Embedding)):
        holders = facts.holders_of(network) or [*facts.accounts_of]
        makers = [facts.networks[network], *(facts.optimizers[number] for number in holders)]
        made = [p for o, p in facts.record.made.items() if any(o is maker for maker in makers)]
        born = {facts.record.births.get(number) for number in ownerless} - {None}
        made += born if len(born) == 1 else []
        text = "no optimizer holds {}, and a term of a loss leads to nothing else." if left_out else text
        cure = COPIED if ownerless <= facts.record.copied else ""
        return finding("ownerless", (network,), text, [*made, *wasted], cure)
    return finding("unfrozen", (network,), text, places, cure)


def _is_backbone(facts: Facts, names: dict[int, str], ownerless: set[int]) -> bool:
    """Whether these are the first layers of a network, an optimizer holds later ones, and no `inputs=` names them."""
    layers = [(number, name.rpartition(".")[0]) for number, name in names.items()]
    trained = [layer for number, layer in layers if number in facts.owned]
    first = next((index for index, (number, _) in enumerate(layers) if number in facts.owned), 0)
    before = {number: layer for number, layer in layers[:first] if layer not in trained}
    meant = set().union(*(p.named for p in facts.passes))
    return before.keys() >= ownerless and not ownerless & meant


def _cure_of_waste(facts: Facts, network: str, wasted: list[tuple[Pass, set[int]]]) -> str:
    """Return the cure for gradients of a network that no optimizer used. wasted: passes, each with parameters."""
    if not facts.steps:
        return "No optimizer stepped during the audit: audit whole steps."
    cure = KINDS["wasted"].cure
    if any(facts.leads_on(p, network) for p, _ in wasted):
        cure = LIMIT + "."  # `detach()` there would cut off those whom the loss is for
    moved = [name for p, _ in wasted for name in facts.networks_of(p.used)]
    if moved and all(is_leaf(facts.networks[name]) for name in moved):
        cure = cure.replace("list(network.parameters())", f"[{', '.join(dict.fromkeys(moved))}]")
    if all(p.number in facts.balances[number].passes for p, unused in wasted for number in unused):
        cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
    return cure


def plain_leaves(facts: Facts) -> Iterator[Finding]:
    """Yield the leaves in a network that are no parameters of it: no optimizer gets them."""
    unread = [p for p in facts.passes if p.loose and p.place not in facts.read]
    seen: set[int] = set()
    for network, part in facts.networks.items() if unread else ():
        top = facts.record.whole.get(id(part), part)
        inside = next(path for path, module in top.named_modules() if module is part)
        for path, module in top.named_modules(prefix=network.removesuffix(f".{inside}")):
            things = vars(module) | module._buffers | {"_buffers": ()}
            tensors = ((name, tensor) for name, thing in things.items() for tensor in tensors_in(thing))
            for name, value in () if id(module) in seen else tensors:
                places = [p.place for p in unread if any(leaf() is value for leaf in p.loose)]
                if places and id(value) not in facts.held:
                    text = f"the tensor {path}.{name} gets gradients; it is no nn.Parameter, and no optimizer holds it."
                    cure = "Make it an `nn.Parameter`, so that `parameters()` holds it."
                    yield finding("ownerless", (network,), text, places, cure)
            seen.add(id(module))


def shared_networks(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that hold two networks, of which another one that steps holds one, too."""
    stepping = {key: facts.networks_of(held) for key, held in facts.accounts_of.items() if key in facts.steps}
    order = [event.optimizer for event in facts.events if event.kind == "step"]
    succeeds = {  # those of which one never steps again once the other one does, more than once
        frozenset([old, new])
        for old, new in permutations({*order}, 2)
        if old not in order[order.index(new) :] and order.count(new) > 1
    }
    for key, networks in stepping.items():
        beside = (other for other in stepping if other != key and frozenset([other, key]) not in succeeds)
        others = set().union(*(facts.accounts_of[other] for other in beside))
        shared = [n for n in networks if others & {*facts.accounts_of[key]} & facts.numbers[n].keys()]
        if shared and len(shared) < len(networks):
            text = f"an optimizer holds {joined(networks)}, and another one holds {joined(shared)}, too."
            yield finding("shared", networks, text, facts.steps[key].places)
