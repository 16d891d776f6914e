"""Which of a script's modules are its networks: a module, or its parts if these are trained apart."""

from collections import defaultdict
from itertools import combinations, permutations

from torch import nn

from gradient_audit import trace
from gradient_audit.history import History
from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.networks import Networks, is_leaf
from gradient_audit.watch.tensors import ids_of, parameters_of

HEADS = 6  # more children than that are layers


class Own(nn.Module):
    """Stands for the parameters that a module has beside its parts."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.__dict__["of"], self._parameters = module, module._parameters


def touched_in(history: History) -> tuple[set[int], set[frozenset[int]], set[frozenset[int]]]:
    """Return the parameters that events name, those that each pass reached, and those that each term of a loss did."""
    losses = {frozenset(p.reached) for p in history.passes}
    terms = {term.reached for event in history.events[trace.PassBegan] for term in event.terms}
    forwards = [history.forwards[number].event for e in history.events[trace.GraphMissing] for number in e.forwards]
    missing = [forward.parameters for forward in forwards]
    crossed = [call.began.crossed for call in history.calls.values() if not call.is_pass]
    return set().union(*losses, *crossed, *missing, *(row.parameters for row in history.rows)), losses, terms


def settle(networks: Networks, forwards: Forwards) -> tuple[dict[str, nn.Module], dict[int, nn.Module]]:
    """Return the networks by name, and, by the id of each, the module that it is a part of."""
    parameters, holders = networks.parameters, _holders(networks)
    touched, *reached = touched_in(networks.session.history)
    concerned = holders.keys() | parameters.keys_of(touched)
    tops = [_trained_in(top, networks, concerned) for top in networks.top_modules()]
    # A network outside of the training, as an average of weights is, whose forward passes build graphs.
    rows = networks.session.history.forwards.items()
    followed = {row.event.module for number, row in rows if forwards.graphs[number]}
    modules = [module for number, module in forwards.living_modules().items() if number in followed]
    concerned |= {id(p) for module in modules for p in nn.Module.parameters(module) if p.requires_grad}
    losses, terms = ([*map(parameters.keys_of, numbers)] for numbers in reached)
    split = [(top, part) for top in tops for part in _split(top, holders, losses, terms)]
    parts = {id(part): part for _, part in split}  # by id: a user's own `==` may compare them
    chosen = _chosen(parts, concerned)
    named = _named(networks, [parts[key] for key in parts if key in chosen], holders)
    return named, {id(part): top for top, part in split}


def settle_named(networks: Networks) -> tuple[dict[str, nn.Module], dict[int, nn.Module]]:
    """Return likewise the modules that the caller has named: of one that holds several players, its parts."""
    holders, found, tops, given = _holders(networks), {}, {}, {*map(id, networks.named.values())}
    for name, module in networks.named.items():
        for part in _players(module, holders):
            if part is module or id(part) not in given:  # else it has a name of its own
                path = next(path for path, one in module.named_modules() if one is getattr(part, "of", part))
                found[f"{name}.{path}".rstrip(".") + (" (itself)" if isinstance(part, Own) else "")] = part
                tops[id(part)] = module
    return found, tops


def _players(module: nn.Module, holders: dict[int, set[int]]) -> list[nn.Module]:
    """Return the parts of a module, if no optimizer holds something of each two of them; else the module."""
    parts = [part for part in (*module.children(), Own(module)) if ids_of(part)]
    owners = [set().union(*(holders[key] for key in ids_of(part))) for part in parts]
    if all(one & other for one, other in combinations(filter(None, owners), 2)):
        return [module]
    return [inner for part in parts for inner in _players(part, holders)]


def _holders(networks: Networks) -> dict[int, set[int]]:
    """Return, by the id of each parameter, the ids of the optimizers that hold it."""
    holders: dict[int, set[int]] = defaultdict(set)
    for optimizer in networks.optimizers.find():
        for parameter in parameters_of(optimizer):
            holders[id(parameter)].add(id(optimizer))
    return holders


def _trained_in(module: nn.Module, networks: Networks, concerned: set[int]) -> nn.Module:
    """Return the model that an average holds beside its copy, or the network in a loss; of another module, itself."""
    used = [child for child in module.children() if ids_of(child) & concerned]
    if len(used) == 1 and concerned & ids_of(module) <= ids_of(used[0]):
        model, *copies = ([(n, p.shape) for n, p in part.named_parameters()] for part in (*used, *module.children()))
        if copies.count(model) > 1 or networks.is_only_around(module, used[0]):
            return used[0]
    return module


def _chosen(parts: dict[int, nn.Module], concerned: set[int]) -> set[int]:
    """Return those of the modules that have concerned parameters which no other of them has."""
    ids = {key: ids_of(part) for key, part in parts.items()}
    chosen, covered = set(), set()
    # A network of which only a part is used gives way to that part; a compiled one comes after the original.
    for key in sorted(parts, key=lambda key: len(ids[key] - concerned)):
        if new := (ids[key] & concerned) - covered:
            covered |= new
            chosen.add(key)
    return chosen


def _named(networks: Networks, parts: list[nn.Module], holders: dict[int, set[int]]) -> dict[str, nn.Module]:
    named: dict[str, nn.Module] = {}
    for part in (part for part in parts if isinstance(part, Own)):
        networks.names[part] = f"{networks.names.get(part.of, type(part.of).__name__)} (itself)"
    seen: set[tuple[str, object]] = set()
    for part in parts:
        name = networks.names.get(part._parameters["itself"] if is_leaf(part) else part, type(part).__name__)
        name = "tensor" if name == "Module" else name
        made = name, networks.parameters.made.get(part), any(holders[key] for key in ids_of(part))
        stray = networks.times[made[1]] > 1 and not made[2]
        if made in seen if part in networks.names else stray:
            continue  # made anew in each turn, under one name: the first stands for all; or in forward()
        seen.add(made)
        while name in named:
            name += "'"
        named[name] = part
    return named


def _split(module: nn.Module, holders: dict[int, set[int]], *losses: list[set[int]]) -> list[nn.Module]:
    """Split a module whose parts have different optimizers, or of which losses, or terms of them, reach only some."""
    own = [Own(module)] if any(True for _ in nn.Module.parameters(module, recurse=False)) else []
    children = [ids_of(child) for child in (*module.children(), *own)]
    owners = {frozenset(holders[key]) for key in ids_of(module)} - {frozenset()}
    whole, terms = ({frozenset(i for i, ids in enumerate(children) if ids & x) for x in each} for each in losses)
    # A term that compares features of the first layers, as a vocoder's, makes no heads: each of these has its own term.
    heads = any(one - other and other - one for one, other in permutations(terms, 2))
    heads |= any(other and one - other for one, other in permutations(whole, 2))
    heads &= len(set().union(*whole)) <= HEADS
    # Without an optimizer, only a judge is a head: a loss, or a term, reaches it and nothing else here.
    others = (ids for i, ids in enumerate(children) if {i} not in (*whole, *terms))
    heads &= all(holders[key] for ids in others for loss in losses[0] for key in ids & loss)
    if not (heads or len(owners) > 1) or not any(True for _ in module.children()):
        return [module]
    return [part for child in module.children() for part in _split(child, holders, *losses)] + own
