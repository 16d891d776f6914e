"""Where the watched networks come from: named by the caller, or found while a script makes them."""

import re
import weakref
from collections import Counter
from collections.abc import Set
from contextlib import suppress
from itertools import islice
from types import FrameType, FunctionType, ModuleType

from torch import Tensor, nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.places import Place
from gradient_audit.trace import Replaced
from gradient_audit.watch.frames import PACKAGE, construction_place, current_place, frames
from gradient_audit.watch.guard import guarded, watch_calls
from gradient_audit.watch.optimizers import Optimizers, is_of_torch
from gradient_audit.watch.tensors import ids_of, parameters_of

# Names that come last: of an average or a loss that holds a network, and of where it is only inside.
POOR = re.compile(r"^self\b|(?:^|[._'])ema(?:$|[._'])|average|loss|criterion", re.IGNORECASE)
OF_EACH = frozenset(vars(nn.Module()))  # attributes of each module, as `_parameters`


class Networks:
    """The modules that the caller has named, or those that a script makes."""

    def __init__(self, optimizers: Optimizers, named: dict[str, nn.Module] | None):
        self.optimizers, self.named = optimizers, named
        self.parameters, self.session, self.guard = optimizers.parameters, optimizers.session, optimizers.guard
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
        self.parameters.start()
        hooks = self.session.hooks
        hooks.callback(registration.register_module_parameter_registration_hook(self.note_part).remove)
        hooks.callback(registration.register_module_module_registration_hook(self.note_part).remove)
        # Of a network that is copied or unpickled, no registration hook is called. A hook on every forward pass would
        # find it, too, but torch.compile would trace it into each graph.
        watch_calls(hooks, nn.Module, "__setstate__", lambda module, *_, **__: self.note_part(module))

    @guarded
    def note_part(self, module: nn.Module, name: str = "", part: object = None) -> None:
        """Note a module, and the part that it gets."""
        self.parameters.expect(*([module] if self.named is None else self.known))
        if self.named is not None:
            return
        old = (module._modules.get(name) or module._parameters.get(name)) if part is not None else None
        if old is not None and old is not part:
            self._note_replacement(part, old)
        # A compiled module is not a parent but the same network.
        if module not in self.known and name != "_orig_mod":
            self.known[module] = None
            self.parameters.made[module] = place = construction_place(module)
            self.times[place] += 1

    def _note_replacement(self, part: Tensor | nn.Module, old: Tensor | nn.Module) -> None:
        new, gone = ([x] if isinstance(x, Tensor) else [*nn.Module.parameters(x)] for x in (part, old))
        for parameter in new:
            if type(parameter) is nn.Parameter:
                self.parameters.open(parameter)
        numbers = self.parameters.numbers_of(new), self.parameters.numbers_of(gone)
        self.session.add(Replaced(current_place(), *numbers))

    def add_leaves(self, optimizer: Optimizer) -> None:
        """Take the tensors that an optimizer holds, and no module, for networks of one parameter each.

        One of PyTorch's may hold plain ones that require no gradient, as copies of weights whose `.grad` are assigned.
        """
        inside = {id(p) for module in self.known for p in nn.Module.parameters(module, recurse=False)}
        for tensor in parameters_of(optimizer) if self.named is None else ():
            is_copy = type(tensor) is Tensor and is_of_torch(optimizer)
            is_trained = type(tensor) in (Tensor, nn.Parameter) and (tensor.requires_grad or is_copy)
            if is_trained and id(tensor) not in inside:
                module = nn.Module()
                module._parameters["itself"] = tensor
                self.leaves.setdefault(optimizer, []).append(module)
                self.parameters.open(tensor)

    def hold(self, parameters: Set[int]) -> None:
        """Hold the networks of these parameters, and the optimizers: a script that ends drops them."""
        if self.named is None and not parameters <= self.covered:
            self.covered |= parameters
            self.optimizers.find()
            new = [top for top in self.top_modules() if id(top) not in self.trained and ids_of(top) & parameters]
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
                reused += [pair for pair in level if self._is_reused(*pair)]
                level = [inside for name, value in level for inside in _contents(name, value)]
            for name, value in reused:
                self.names.setdefault(value, name)

    def _name(self, thing: Tensor | nn.Module, name: str) -> None:
        """Name a module or leaf, unless it has a name that is as good."""
        if thing not in self.names or (POOR.search(self.names[thing]) and not POOR.search(name)):
            self.names[thing] = name

    def is_only_around(self, module: nn.Module, part: nn.Module) -> bool:
        """Whether the part has the better name, as a network in a loss that is a module, or in an average of it."""
        names = [self.names.get(one, "").removeprefix("self.") for one in (module, part)]
        return bool(POOR.search(names[0])) and not POOR.search(names[1] or names[0])

    def _is_reused(self, name: str, value: object) -> bool:
        """Name a module or leaf by a variable; return whether the name is another one's."""
        if issubclass(type(value), nn.Module) and name != "self":
            first = self.first.setdefault(name, weakref.ref(value))()
            if first is not None and first is not value:
                return True
            self._name(value, name)
            self._name(getattr(value, "_orig_mod", value), name)
        elif id(value) in self.parameters.accounts:  # asking a tensor of the script's whether it is a leaf may raise
            self._name(value, name)
        return False


def is_leaf(module: nn.Module) -> bool:
    """Whether the module stands for a plain tensor."""
    return type(module) is nn.Module and "itself" in module._parameters


def _contents(name: str, value: object) -> list[tuple[str, object]]:
    """Return the first contents of a variable, each with the expression for it."""
    kind = type(value)
    form, items = "{}.{}", ()
    if issubclass(kind, nn.Module):
        own = [(key, x) for key, x in vars(value).items() if key not in OF_EACH] + [*value._buffers.items()]
        items = [*value.named_children(), *((key, x) for key, x in own if type(x) in (dict, list, tuple, Tensor))]
    elif issubclass(kind, dict | list | tuple):
        form, items = "{}[{!r}]", dict.items(value) if issubclass(kind, dict) else enumerate(value)
    elif kind.__dictoffset__ and not issubclass(kind, type | FunctionType | ModuleType | weakref.ProxyType | Tensor):
        with suppress(AttributeError):  # of a task of asyncio's
            items = object.__getattribute__(value, "__dict__").items()
    return [(form.format(name, key), item) for key, item in list(islice(items, 100)) if type(key) in (str, int)]
