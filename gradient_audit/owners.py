"""Parameters that no optimizer holds, and gradients that none used."""

from collections import defaultdict
from collections.abc import Iterator

from torch import Tensor

from gradient_audit.facts import Facts, finding
from gradient_audit.findings import KINDS, LIMIT, Finding, joined
from gradient_audit.places import Place
from gradient_audit.record import Pass


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield what no optimizer holds, and the gradients that none used."""
    passes = facts.record.passes
    wasted: dict[tuple[str, Place], dict[int, set[int]]] = defaultdict(dict)
    for number, p in enumerate(passes):
        for network, ids in facts.numbers.items():
            unused = (p.reached & ids.keys()).difference(facts.excused, p.used)
            if unused and not p.raised:
                wasted[network, p.place][number] = unused
    unfrozen = set()
    reached = set().union(*(p.reached for p in passes))
    for network, ids in facts.numbers.items():
        ownerless = ids.keys() & reached - facts.owned
        ownerless -= facts.fed  # stepped by hand
        if not ownerless or not facts.optimizers:  # without any optimizer, no parameter is expected to have one
            continue
        here = {place: unused for (name, place), unused in wasted.items() if name == network}
        numbers = {number for unused in here.values() for number in unused}
        count = facts.count_of(ownerless, network)
        cure, judged = "", [passes[number] for number in numbers]
        to_train = _is_led_to(facts, network, judged) or any(p.reached <= ids.keys() for p in judged)
        if not ids.keys() & facts.owned and here and not to_train:
            text = f"no optimizer holds {network}, and it gets gradients, {len(numbers)}x."
            twin = any(term.dead and term.reached & ids.keys() for p in judged for term in p.terms)
            if not twin and not any(facts.leads_on(p, network) for p in judged):  # a target
                calls = [event for event in facts.record.forwards if event.module() is facts.networks[network]]
                here = [event.place for event in calls if event.in_loss] or here
                cure = "Compute it under `torch.no_grad()`, or freeze the network, `network.requires_grad_(False)`."
        elif here and _is_backbone(facts, ids, ownerless):
            text = f"no optimizer holds {count} of {network}, which get gradients."
        else:
            holders = facts.holders_of(network) or [*facts.accounts_of]
            makers = [facts.networks[network], *(facts.optimizers[number] for number in holders)]
            made = [p for o, p in facts.record.made.items() if any(o is maker for maker in makers)]
            yield finding("ownerless", (network,), f"{count} of {network} are held by no optimizer.", made)
            continue
        unfrozen.add(network)
        yield finding("unfrozen", (network,), text, here, cure)
    for (network, place), unused in wasted.items():
        if network not in unfrozen:
            yield _wasted_gradients(facts, network, place, unused)


def _is_backbone(facts: Facts, names: dict[int, str], ownerless: set[int]) -> bool:
    """Whether these are the first layers of a network, and an optimizer holds later ones, as of a head."""
    layers = [(number, name.rpartition(".")[0]) for number, name in names.items()]
    trained = [layer for number, layer in layers if number in facts.owned]
    first = next((index for index, (number, _) in enumerate(layers) if number in facts.owned), 0)
    return {number for number, layer in layers[:first] if layer not in trained} >= ownerless


def _is_led_to(facts: Facts, network: str, passes: list[Pass]) -> bool:
    """Whether the gradient comes to the network through one that an optimizer holds: it is a part, no judge."""
    trained = [name for name, ids in facts.numbers.items() if name != network and ids.keys() & facts.owned]
    alike = [p for q in passes if (p := facts.in_detail(q))]
    return any(facts.leads_through(p, name, network) for p in alike for name in trained)


def _wasted_gradients(facts: Facts, network: str, place: Place, unused: dict[int, set[int]]) -> Finding:
    """Return the finding for gradients of a network that no optimizer used. unused: parameters, by pass."""
    count = facts.count_of(set().union(*unused.values()), network)
    text = f"{count} of {network} got gradients that no optimizer used, {len(unused)}x."
    cure = KINDS["wasted"].cure
    if any(facts.leads_on(facts.record.passes[number], network) for number in unused):
        cure = LIMIT + "."  # `detach()` there would cut off those whom the loss is for
    if not facts.steps:
        cure = "No optimizer stepped during the audit: audit whole steps."
    elif all(n in facts.by_number[k].passes for n, numbers in unused.items() for k in numbers):
        cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
    return finding("wasted", (network,), text, [place], cure)


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
    for p in facts.record.passes:
        for leaf in () if p.read else {id(ref()) for ref in p.loose} & attributes.keys():
            places[attributes[leaf]].append(p.place)
    for (network, name), where in places.items():
        text = f"the tensor {network}.{name} gets gradients, but it is no nn.Parameter and no optimizer holds it."
        cure = "Make it an `nn.Parameter`, so that `parameters()` holds it."
        yield finding("ownerless", (network,), text, where, cure)


def doubtful_holders(facts: Facts) -> Iterator[Finding]:
    """Yield the optimizers that hold what is another's, or what cannot move."""
    stepping = {key: held for key, held in facts.accounts_of.items() if key in facts.steps}
    for key, mine in stepping.items():
        others = [{*held} for other, held in stepping.items() if other != key]
        networks = facts.networks_of(mine)
        shared = [n for n in networks if any(held & facts.numbers[n].keys() for held in others)]
        places = facts.steps[key].places
        if shared and len(shared) < len(networks):
            text = f"an optimizer holds {joined(networks)}, and another one holds {joined(shared)}, too."
            yield finding("shared", networks, text, places)
        frozen = [n for n in mine if not facts.by_number[n].stepped]
        if 0 < len(frozen) < len(mine) and frozen == mine[-len(frozen) :]:  # the last layers, not the first
            for network in facts.networks_of(frozen):
                count = facts.count_of({*frozen}, network)
                text = f"{count} of {network} are frozen, and an optimizer holds them; it does not move them."
                yield finding("held", (network,), text, places)
