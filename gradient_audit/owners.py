"""Parameters that no optimizer holds, and gradients that none used."""

from collections import defaultdict
from collections.abc import Iterator

from torch import Tensor, nn

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import KINDS, LIMIT, Finding, joined
from gradient_audit.networks import is_leaf
from gradient_audit.places import Place
from gradient_audit.record import Pass
from gradient_audit.unused import left_out_networks
from gradient_audit.uses import idle_parameters

ACCUMULATE = "To accumulate gradients over batches, call `zero_grad()` only after a step; if they are not wanted, "
ACCUMULATE += "as of a batch that is skipped, this is right."


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield what no optimizer holds, and the gradients that none used."""
    reached = set().union(*(p.reached for p in facts.passes))
    used = set().union(*(p.used for p in facts.passes))
    unknown = any(event.kind == "step" and frozenset() in event.taken for event in facts.events)
    handed = facts.handed | {p.place for p in facts.passes if unknown and not p.detailed}
    excused, left_out = idle_parameters(facts), left_out_networks(facts)
    replaced = set().union(*(event.taken.get(frozenset(), set()) for event in facts.events if event.kind == "step"))
    swaps = {new: place for new, (place, old) in facts.record.replaced.items() if old & facts.owned}
    for network, ids in facts.numbers.items():
        wasted: dict[Place, dict[int, set[int]]] = defaultdict(dict)
        for number, p in enumerate(facts.passes):
            # Of a pass whose hooks computed what the step used instead, as the norms of samples, nothing is wasted.
            unused = (p.reached & ids.keys()).difference(excused, p.used, replaced if p.hooked else ())
            if unused and not (p.raised or p.place in handed or number in facts.record.ledger.skipped):
                wasted[p.place][number] = unused
        ownerless = (ids.keys() & reached).difference(facts.owned, facts.fed, used)  # not stepped by hand, either
        left = set().union(*(numbers for unused in wasted.values() for numbers in unused.values()))
        if lost := (facts.record.held & left) - facts.owned:
            text = f"{facts.count_of(lost, network)} of {{}} are no longer held by the optimizer that stepped on them."
            cure = "See what changes its `param_groups`; a generator there, as `network.parameters()`, is used up once."
            yield finding("ownerless", (network,), text, wasted, cure)
        if swapped := {n: swaps[n] for n in ownerless & swaps.keys()}:
            count = facts.count_of({*swapped}, network)
            text = f"{count} of {{}} are held by no optimizer; one holds those whose place they took."
            cure = "Make the optimizer after this line, or give it the new ones with `add_param_group()`."
            yield finding("ownerless", (network,), text, [*swapped.values(), *wasted], cure)
            ownerless -= swapped.keys()
        told: set[int] = set()
        # Without any optimizer, no parameter is expected to have one.
        if ownerless and facts.optimizers and not unknown:
            found = _ownerless(facts, network, ownerless, wasted, left_out=network in left_out)
            told = ownerless if found.kind == "unfrozen" or network in left_out else told
            yield found
        for place, unused in wasted.items():
            if numbers := set().union(*unused.values()) - told - lost:
                count = facts.count_of(numbers, network)
                text = f"{count} of {{}} got gradients that no optimizer used, {len(unused)}x."
                if wiped := _wiped(facts, [facts.passes[number] for number in unused], numbers):
                    text, cure = f"{text} This line clears them, and a step uses the last ones alone.", ACCUMULATE
                    yield finding("wasted", (network,), text, [wiped, place], cure, doubtful=True)
                    continue
                yield finding("wasted", (network,), text, [place], _cure_of_waste(facts, network, unused))


def _wiped(facts: Facts, passes: list[Pass], numbers: set[int]) -> Place | None:
    """Return the line that clears the gradients of a pass's line, if a step uses those of its last pass alone."""
    others = [p for p in facts.passes if p.place == passes[0].place and p.used & numbers]
    lines = set()
    for p in passes if others and len(passes) > len(others) else ():
        after = (e for e in facts.events[facts.events.index(p) + 1 :] if e.kind in ("zero_grad", "step", "backward"))
        event = next(after, None)
        lines.add(event.place if event and event.kind == "zero_grad" and event.reached & numbers else None)
    return lines.pop() if len(lines) == 1 else None


def _ownerless(facts: Facts, network: str, ownerless: set[int], wasted: dict, *, left_out: bool) -> Finding:
    """Return the finding for parameters that no optimizer holds: of a judge, or of first layers, it is waste."""
    ids, cure, places = facts.numbers[network], "", [*wasted]
    numbers = set().union(*wasted.values())
    judged = [facts.passes[number] for number in numbers]
    to_train = _is_led_to(facts, network, judged) or any(p.reached <= ids.keys() for p in judged)
    text = f"{facts.count_of(ownerless, network)} of {{}} are held by no optimizer."
    if wasted and not ids.keys() & facts.owned and not to_train and not left_out:
        text = f"no optimizer holds {{}}, which gets gradients, {len(numbers)}x."
        if not any(facts.leads_on(p, network) for p in judged):  # a target
            calls = [event for event in facts.record.forwards if event.module() is facts.networks[network]]
            places = [event.place for event in calls if event.in_loss] or places
            cure = "Compute it under `torch.no_grad()`, or freeze the network, `network.requires_grad_(False)`."
    elif not (wasted and (_is_backbone(facts, ids, ownerless) or type(facts.networks[network]) is nn.Embedding)):
        holders = facts.holders_of(network) or [*facts.accounts_of]
        makers = [facts.networks[network], *(facts.optimizers[number] for number in holders)]
        made = [p for o, p in facts.record.made.items() if any(o is maker for maker in makers)]
        text = "no optimizer holds {}, and a term of a loss leads to nothing else." if left_out else text
        return finding("ownerless", (network,), text, [*made, *wasted] if left_out else made)
    return finding("unfrozen", (network,), text, places, cure)


def _is_backbone(facts: Facts, names: dict[int, str], ownerless: set[int]) -> bool:
    """Whether these are the first layers of a network, an optimizer holds later ones, and no `inputs=` names them."""
    layers = [(number, name.rpartition(".")[0]) for number, name in names.items()]
    trained = [layer for number, layer in layers if number in facts.owned]
    first = next((index for index, (number, _) in enumerate(layers) if number in facts.owned), 0)
    before = {number: layer for number, layer in layers[:first] if layer not in trained}
    meant = set().union(*(p.named for p in facts.passes))
    return before.keys() >= ownerless and not ownerless & meant


def _is_led_to(facts: Facts, network: str, passes: list[Pass]) -> bool:
    """Whether the gradient comes to the network through one that an optimizer holds: it is a part, no judge."""
    trained = [name for name, ids in facts.numbers.items() if name != network and ids.keys() & facts.owned]
    alike = [p for q in passes if (p := facts.in_detail(q))]
    return any(facts.leads_through(p, name, network) for p in alike for name in trained)


def _cure_of_waste(facts: Facts, network: str, unused: dict[int, set[int]]) -> str:
    """Return the cure for gradients of a network that no optimizer used. unused: parameters, by pass."""
    if not facts.steps:
        return "No optimizer stepped during the audit: audit whole steps."
    cure = KINDS["wasted"].cure
    if any(facts.leads_on(facts.passes[number], network) for number in unused):
        cure = LIMIT + "."  # `detach()` there would cut off those whom the loss is for
    moved = [n for number in unused for n in facts.networks_of(facts.passes[number].used)]
    if moved and all(is_leaf(facts.networks[name]) for name in moved):
        cure = cure.replace("list(network.parameters())", f"[{', '.join(dict.fromkeys(moved))}]")
    if all(n in facts.balances[k].passes for n, numbers in unused.items() for k in numbers):
        cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
    return cure


def plain_leaves(facts: Facts) -> Iterator[Finding]:
    """Yield the leaves in a network that are no parameters of it: no optimizer gets them."""
    attributes = {
        id(value): (network, f"{path}.{name}".lstrip("."))
        for network, top in facts.networks.items()
        for path, module in top.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, Tensor) and id(value) not in facts.held
    }
    places: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for p in facts.passes:
        for leaf in () if p.place in facts.read else {id(ref()) for ref in p.loose} & attributes.keys():
            places[attributes[leaf]].append(p.place)
    for (network, name), where in places.items():
        text = f"the tensor {network}.{name} gets gradients, but it is no nn.Parameter and no optimizer holds it."
        cure = "Make it an `nn.Parameter`, so that `parameters()` holds it."
        yield finding("ownerless", (network,), text, where, cure)


def strays(facts: Facts) -> Iterator[Finding]:
    """Yield the lines that made parameters in no network, as anew in each pass, which no optimizer holds."""
    known = facts.owned | facts.record.given | facts.record.held | facts.fed | facts.inside.keys()
    lines: dict[Place, list[tuple[int, Pass]]] = defaultdict(list)
    for p in facts.passes if facts.optimizers else ():
        for number in () if p.raised or p.place in facts.read | facts.handed else p.reached - known - p.used:
            if place := facts.record.displaced.get(number) or facts.record.births[number]:
                lines[place].append((number, p))
    for place, found in lines.items():
        text = "a parameter that this line made gets gradients, and no optimizer holds it."
        cure = "Give it to the optimizer, or freeze it: `requires_grad_(False)`."
        numbers, passes = {number for number, _ in found}, {p.number for _, p in found}
        if taken := any(number in facts.record.displaced for number in numbers):
            text = "an optimizer holds the parameter that this line made, but the loss goes on with the one before."
            cure = "Use the new one in the loss."
        elif len(numbers) > 1 < len(passes):
            cure = "If it is made anew in each pass, make it once, as in `__init__`, and give it to the optimizer."
        yield finding("ownerless", (), text, [place, *(p.place for _, p in found)], cure, doubtful=not taken)


def _follows(order: list[int], old: int, new: int) -> bool:
    """Whether an optimizer never steps again once the other one does, more than once."""
    return old not in order[order.index(new) :] and order.count(new) > 1 if {old, new} <= {*order} else False


def shared_networks(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that hold two networks, of which another one that steps holds one, too."""
    stepping = {key: facts.networks_of(held) for key, held in facts.accounts_of.items() if key in facts.steps}
    order = [event.optimizer for event in facts.events if event.kind == "step"]
    for key, networks in stepping.items():
        apart = {o for o in stepping if _follows(order, o, key) or _follows(order, key, o)} | {key}
        others = set().union(*(facts.accounts_of[other] for other in stepping if other not in apart))
        shared = [n for n in networks if others & {*facts.accounts_of[key]} & facts.numbers[n].keys()]
        if shared and len(shared) < len(networks):
            got = set().union(*(p.users.get(key, set()) for p in facts.passes))
            cut = [name for name in shared if not got & facts.numbers[name].keys()]
            text = f"an optimizer holds {joined(networks)}, and another one holds {joined(shared)}, too."
            text += f" It got no gradient of {joined(cut)}: does `detach()` cut that off?" * bool(cut)
            yield finding("shared", networks, text, facts.steps[key].places)
