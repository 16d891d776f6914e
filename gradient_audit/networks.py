"""Where the watched networks come from: named by the caller, or found while a script makes them."""

import gc
import traceback
import weakref
from collections import Counter, defaultdict
from collections.abc import Set
from contextlib import suppress
from itertools import islice, permutations
from types import FrameType, FunctionType, ModuleType, TracebackType

from torch import Tensor, nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.graph import ids_of, parameters_of
from gradient_audit.guard import guarded, watch_calls
from gradient_audit.places import PACKAGE, Place, construction_place, current_place, frames

HEADS = 6  # more children than that are layers


class Networks:
    """The networks that the caller has named, or those that a script makes.

    A network is a module that is not part of another, named as variables name it. If the parts of a module have
    different optimizers, or a loss reaches only some, as in a class of both G and D or of heads, each is a network.
    """

    def __init__(self, recorder: object, named: dict[str, nn.Module] | None):
        self.recorder, self.record = recorder, recorder.record
        self.named, self.networks = named, {}
        # Every module, in order of construction: weakly, for what the script drops is no network.
        self.known = WeakIdKeyDictionary()
        for module in (named or {}).values():  # no dict: a user's own `==` may compare them
            self.known[module] = None
        self.leaves = WeakIdKeyDictionary()  # by optimizer: a module for each plain tensor that it holds
        self.names = WeakIdKeyDictionary()
        self.first: dict[str, weakref.ref] = {}  # by name: the module that had it first
        self.times: Counter[Place] = Counter()  # that a line has made a module
        self.trained: dict[int, nn.Module] = {}  # by id, those reached or stepped: a script that ends drops them
        self.covered: set[int] = set()  # parameters, by id, whose networks are in `trained`

    def start(self) -> None:
        hooks = self.recorder.hooks
        hooks.callback(registration.register_module_parameter_registration_hook(self.add).remove)
        hooks.callback(registration.register_module_module_registration_hook(self.add).remove)
        # Of a network that is copied or unpickled, no registration hook is called. A hook on every forward pass would
        # find it, too, but torch.compile would trace it into each graph.
        watch_calls(hooks, nn.Module, "__setstate__", self.add)

    @guarded
    def add(self, module: nn.Module, name: object = "", part: object = None) -> None:
        self.recorder.accounts.expect(*([module] if self.named is None else self.known))
        if self.named is not None:
            return
        old = (module._modules.get(name) or module._parameters.get(name)) if part is not None else None
        if old is not None and old is not part:
            new, gone = ([x] if isinstance(x, Tensor) else [*nn.Module.parameters(x)] for x in (part, old))
            for parameter in new:
                if type(parameter) is nn.Parameter:
                    self.recorder.accounts.open(parameter)
            change = current_place(), self.record.numbers_of(gone)
            self.record.replaced |= dict.fromkeys(self.record.numbers_of(new), change)
        # A compiled module is not a parent but the same network.
        if module not in self.known and name != "_orig_mod":
            self.known[module] = None
            self.record.made[module] = place = construction_place(module)
            self.times[place] += 1

    def add_leaves(self, optimizer: Optimizer) -> None:
        """Take the tensors that an optimizer holds, and no module, for networks of one parameter each."""
        inside = {id(p) for module in self.known for p in nn.Module.parameters(module, recurse=False)}
        for tensor in parameters_of(optimizer) if self.named is None else ():
            if type(tensor) in (Tensor, nn.Parameter) and tensor.requires_grad and id(tensor) not in inside:
                module = nn.Module()
                module._parameters["itself"] = tensor
                self.leaves.setdefault(optimizer, []).append(module)
                self.recorder.accounts.open(tensor)

    def hold(self, parameters: Set[int]) -> None:
        """Hold the networks of these parameters, and the optimizers: a script that ends drops them."""
        if self.named is None and not parameters <= self.covered:
            self.covered |= parameters
            self.recorder.accounts.find_optimizers()
            new = [top for top in self.top_modules() if id(top) not in self.trained and parameters & ids_of(top)]
            self.trained |= {id(top): top for top in new}
            if any(part not in self.names for top in new for part in (top, *top.children())):
                self.name_modules([*frames()][::-1])

    def top_modules(self) -> list[nn.Module]:
        """Return the modules that are part of no other, in order of construction."""
        known = list(self.known)
        inner = {id(part) for module in known for part in module.children()}
        top = [module for module in known if id(module) not in inner]
        return top + [module for modules in self.leaves.values() for module in modules]

    def name_modules(self, outer: list[FrameType]) -> None:
        """Name modules by the variables of these frames, outermost first, and by the contents of those variables."""
        for frame in outer:
            if frame.f_globals.get("__name__") == "runpy" or frame.f_code.co_filename.startswith(PACKAGE):
                continue
            level = list(frame.f_locals.items())
            reused = []  # locals that have named another module: what holds that may have a better name
            for _ in range(3):
                for name, value in level:
                    if issubclass(type(value), nn.Module) and name != "self":
                        first = self.first.setdefault(name, weakref.ref(value))()
                        if first is not None and first is not value:
                            reused.append((value, name))
                            continue
                        self.names.setdefault(value, name)
                        self.names.setdefault(getattr(value, "_orig_mod", value), name)
                    elif type(value) in (Tensor, nn.Parameter) and value.requires_grad and value.is_leaf:
                        self.names.setdefault(value, name)
                level = [inside for name, value in level for inside in _contents(name, value)]
            for value, name in reused:
                self.names.setdefault(value, name)

    def settle(self, trace: TracebackType | None = None) -> dict[str, nn.Module]:
        """Return, by name, the networks that a pass reached or an optimizer holds. trace: of what the script raised."""
        if self.named is not None:
            return self.named
        self.name_modules([frame for frame, _ in traceback.walk_tb(trace)])  # the frames of what the script raised
        gc.collect()  # dead modules that hold one another
        self.recorder.accounts.expect(*self.known)
        holders = defaultdict(set)
        for optimizer in self.recorder.accounts.find_optimizers():
            for parameter in parameters_of(optimizer):
                holders[id(parameter)].add(id(optimizer))
        record = self.record
        concerned = holders.keys() | record.keys_of(set().union(*(event.reached for event in record.events)))
        # A network outside of the training, as an average of weights is, whose forward passes build graphs.
        modules = [module for event in record.forwards if event.graph and (module := event.module()) is not None]
        concerned |= {id(p) for module in modules for p in nn.Module.parameters(module) if p.requires_grad}
        # What the losses reach, and their terms. And modules by id: a user's own `==` may compare them.
        losses = [*map(record.keys_of, {frozenset(p.reached) for p in record.passes})]
        terms = [*map(record.keys_of, {frozenset(term.reached) for p in record.passes for term in p.terms})]
        split = [(top, part) for top in self.top_modules() for part in _split(top, holders, losses, terms)]
        parts = {id(part): part for _, part in split}
        record.whole = {id(part): top for top, part in split}
        ids = {key: ids_of(part) for key, part in parts.items()}
        chosen, covered = set(), set()
        # A network of which only a part is used gives way to that part; a compiled one comes after the original.
        for key in sorted(parts, key=lambda key: len(ids[key] - concerned)):
            if new := (ids[key] & concerned) - covered:
                covered |= new
                chosen.add(key)
        seen: set[tuple[str, object]] = set()
        for part in (parts[key] for key in parts if key in chosen):
            name = self.names.get(part._parameters["itself"] if is_leaf(part) else part, type(part).__name__)
            name = "tensor" if name == "Module" else name
            made = name, record.made.get(part)
            stray = self.times[made[1]] > 1 and not any(holders[key] for key in ids[id(part)])
            if made in seen if part in self.names else stray:
                continue  # made anew in each turn, under one name: the first stands for all; or in forward()
            seen.add(made)
            while name in self.networks:
                name += "'"
            self.networks[name] = part
        return self.networks


def is_leaf(module: nn.Module) -> bool:
    """Whether the module stands for a plain tensor."""
    return type(module) is nn.Module and "itself" in module._parameters


def _contents(name: str, value: object) -> list[tuple[str, object]]:
    """Return the first contents of a variable, each with the expression for it."""
    kind = type(value)
    form, items = "{}.{}", ()
    if issubclass(kind, nn.Module):
        own = [*vars(value).items(), *value._buffers.items()]
        items = [*value.named_children(), *((key, held) for key, held in own if type(held) in (list, Tensor))]
    elif issubclass(kind, dict | list | tuple):
        form, items = "{}[{!r}]", dict.items(value) if issubclass(kind, dict) else enumerate(value)
    elif kind.__dictoffset__ and not issubclass(kind, type | FunctionType | ModuleType | weakref.ProxyType | Tensor):
        with suppress(AttributeError):  # of a task of asyncio's
            items = object.__getattribute__(value, "__dict__").items()
    return [(form.format(name, key), item) for key, item in list(islice(items, 100)) if type(key) in (str, int)]


def _split(module: nn.Module, holders: dict[int, set[int]], *losses: list[set[int]]) -> list[nn.Module]:
    """Split a module whose parts have different optimizers, or of which losses, or terms of them, reach only some."""
    children = [ids_of(child) for child in module.children()]
    owners = {frozenset(holders[key]) for key in ids_of(module)} - {frozenset()}
    whole, terms = ({frozenset(i for i, ids in enumerate(children) if ids & x) for x in each} for each in losses)
    # A term that compares features of the first layers, as a vocoder's, makes no heads: each of these has its own term.
    heads = any(one - other and other - one for one, other in permutations(terms, 2))
    heads |= any(other and one - other for one, other in permutations(whole, 2))
    heads &= len(set().union(*whole)) <= HEADS
    # Without an optimizer, only a judge is a head: a loss, or a term, reaches it and nothing else here.
    held = (ids for i, ids in enumerate(children) if {i} not in (*whole, *terms))
    heads &= all(holders[key] for ids in held for loss in losses[0] for key in ids & loss)
    if list(nn.Module.parameters(module, recurse=False)) or not (heads or len(owners) > 1):
        return [module]
    return [part for child in module.children() for part in _split(child, holders, *losses)]
