"""The end of an audit: which modules are its networks, and what is known of networks and optimizers then."""

import ast
import gc
import linecache
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer

from gradient_audit import trace
from gradient_audit.places import CONTEXT, Place
from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.naming import named, places_in
from gradient_audit.watch.networks import Networks, is_leaf
from gradient_audit.watch.optimizers import is_of_torch
from gradient_audit.watch.settling import settle, settle_named
from gradient_audit.watch.sources import PARAMETER
from gradient_audit.watch.splitting import unused_totals
from gradient_audit.watch.tensors import parameters_of, tensors_in

CALLS = ("grad", "autograd.grad", "torch.autograd.grad")


class Ending:
    """Adds the events of the end."""

    def __init__(self, forwards: Forwards, networks: Networks):
        self.forwards, self.networks, self.optimizers = forwards, networks, networks.optimizers
        self.lineage, self.parameters, self.session = forwards.lineage, forwards.parameters, forwards.session
        self.lines: set[tuple[str, int]] = set()  # of the user's, that called for a pass
        self.block: Place | None = None  # the line of the `with` that the audit is of; None: a whole script

    def settle(self, raised: TracebackType | None) -> tuple[dict[str, nn.Module], dict[int, nn.Module]]:
        """Return, by name, the networks that a pass reached or an optimizer holds; and see `settling.settle`.

        raised: where the script did.
        """
        networks = self.networks
        if networks.named is not None:
            return settle_named(networks)
        networks.name_modules([frame for frame, _ in traceback.walk_tb(raised)])
        gc.collect()  # dead modules that hold one another
        self.parameters.expect(*networks.known)
        return settle(networks, self.forwards)

    def conclude(self, raised: TracebackType | None, *, by_itself: bool, whole: bool) -> dict[str, nn.Module]:
        """Add what is known now; return the networks, by name. raised: where the script did; else see `Ended`."""
        add, numbers = self.session.add, self.session.numbers
        networks, wholes = self.settle(raised)
        self.optimizers.find()
        if self.forwards.living_graphs():
            gc.collect()  # the first is kept, or in a cycle
        for name, network in networks.items():
            add(self._network(name, network))
            for inner, tensor in [*network.named_parameters(), *network.named_buffers()]:
                if (memory := self.lineage.memory_of(tensor)) in numbers:  # it was changed in place
                    add(trace.TensorNamed(numbers[memory], name, f"{name}.{inner}"))
        leaves = {id(leaf()): leaf() for leaf in self.optimizers.leaves if leaf() is not None}
        for number, optimizer in self.optimizers.active.items():
            add(self._optimizer(number, optimizer, leaves))
        for event in self._named_leaves(networks, wholes, leaves):
            add(event)
        stepped = self.session.history.events[trace.Step] or self.session.history.events[trace.HandStep]
        crossed = set().union(*(call.nodes for call in self.session.calls.values()))
        add(
            trace.Ended(
                by_itself,
                whole,
                str(torch.__version__),
                self.forwards.gone_graphs(),
                *self._written(),
                alike=self._in_one_memory(),
                unused_sums=tuple(unused_totals(self.lineage, crossed)),
                lines_not_run=tuple(dict.fromkeys(_lines_not_run(self.lines, self.block, steps=whole and not stepped))),
            )
        )
        self.session.trace.events[:] = named(self.session.trace.events)
        for excerpt in _excerpts(self.session.trace.events):
            add(excerpt)
        return networks

    def _network(self, name: str, network: nn.Module) -> trace.Network:
        accounts = self.parameters.accounts
        numbers = {accounts[id(p)].number: inner for inner, p in network.named_parameters() if id(p) in accounts}
        kind = "parameter" if is_leaf(network) else _kind(network)
        size = sum(p.numel() for p in nn.Module.parameters(network) if not is_lazy(p))
        made = self.parameters.made.get(network)
        return trace.Network(name, self.session.number_of(network), kind, numbers, size, made)

    def _optimizer(self, number: int, optimizer: Optimizer, leaves: dict[int, Tensor]) -> trace.Optimizer:
        tensors = [*parameters_of(optimizer)]
        bare = [p for p in tensors if type(p) is Tensor and not p.requires_grad and p.grad is None]
        constants = bare if is_of_torch(optimizer) else []
        return trace.Optimizer(
            number,
            type(optimizer).__name__,
            tuple(account.number for account, _ in self.parameters.accounts_of(tensors)),
            leaves=frozenset(self.session.number_of(p) for p in tensors if id(p) in leaves),
            constants=tuple(tuple(tensor.shape) for tensor in constants),
            fused=any(bool(group.get("fused")) for group in optimizer.param_groups),
            has_state=any(optimizer.state.values()) or number in self.optimizers.lost_state,
            made=self.parameters.made.get(optimizer),
        )

    def _named_leaves(
        self, networks: dict[str, nn.Module], wholes: dict[int, nn.Module], leaves: dict[int, Tensor]
    ) -> Iterator[trace.TensorNamed]:
        """Yield the leaves in a network that are no parameters of it."""
        seen: set[int] = set()
        for network, part in networks.items() if leaves else ():
            part, top = getattr(part, "of", part), wholes.get(id(part), part)
            inside = next(path for path, module in top.named_modules() if module is part)
            for path, module in top.named_modules(prefix=network.removesuffix(f".{inside}")):
                things = vars(module) | module._buffers | {"_buffers": ()}
                tensors = ((name, tensor) for name, thing in things.items() for tensor in tensors_in(thing))
                for name, tensor in () if id(module) in seen else tensors:
                    if id(tensor) in leaves:
                        yield trace.TensorNamed(self.session.number_of(tensor), network, f"{path}.{name}")
                seen.add(id(module))

    def _written(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the parameters to which the script wrote what it computed from others, and the others."""
        living = self.parameters.living()
        behind = {a.number: {*self.lineage.memory_of(p).sources.numbers(PARAMETER)} - {a.number} for a, p in living}
        return frozenset(number for number in behind if behind[number]), frozenset().union(*behind.values())

    def _in_one_memory(self) -> tuple[frozenset[int], ...]:
        """Return the parameters that share their memory with others as large, such as a transpose."""
        alike: dict[tuple, set[int]] = defaultdict(set)
        for account, p in self.networks.parameters.living():
            if type(p) is nn.Parameter and p.layout is torch.strided and p.data_ptr():  # 0 of no memory
                alike[p.data_ptr(), p.numel()].add(account.number)
        return tuple(frozenset(numbers) for numbers in alike.values() if len(numbers) > 1)


def _kind(network: nn.Module) -> str:
    kind = type(network)
    return kind.__name__ if kind.__module__.startswith("torch.nn.") else f"{kind.__module__}.{kind.__qualname__}"


def _lines_not_run(lines: set[tuple[str, int]], block: Place | None, *, steps: bool) -> Iterator[str]:
    """Yield the lines that call autograd, and did not run, of files of which some ran. steps: likewise, no step did.

    block: only those in it, and in functions of which some ran.
    """
    ran: dict[str, set[int]] = defaultdict(set)
    for file, number in lines:
        ran[file].add(number)
    for file, numbers in ran.items():
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except SyntaxError:  # a cell with magics
            continue
        nodes = [*ast.walk(tree)]
        # A `backward` of the script's own, which is no static method as that of a Function: what calls it need not run
        # one.
        own = any(n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == "backward" and not n.decorator_list)
        parts = [node for node in nodes if _is_part(node, file, block)]
        of_ran = {_part_of(number, parts) for number in numbers}
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        for call in (call for call in calls if not block or _part_of(call.lineno, parts) in of_ran):
            name = ast.unparse(call.func)
            calls_autograd = (name.endswith(".backward") and not own) or name in CALLS
            calls_autograd |= steps and name.endswith(".step") and "opt" in name
            if calls_autograd and not numbers & {*range(call.lineno, call.end_lineno + 1)}:
                yield f"{Path(file).name}:{call.lineno}"


def _is_part(node: ast.AST, file: str, block: Place | None) -> bool:
    """Whether a node is a function, or the `with` of an audit."""
    if isinstance(node, ast.With):
        return block is not None and file == block.file and node.lineno <= block.number <= node.body[0].lineno
    return isinstance(node, ast.FunctionDef)


def _part_of(number: int, parts: list) -> object:
    """Return the innermost of these nodes that has a line, or None."""
    having = (part for part in parts if part.lineno <= number <= part.end_lineno)
    return max(having, key=lambda part: part.lineno, default=None)


def _excerpts(events: list) -> Iterator[trace.Excerpt]:
    """Yield the lines of source around those that events name, by file."""
    named: dict[str, set[int]] = defaultdict(set)
    places = places_in(events)
    for place in places | {place.via for place in places if place.via}:
        last = place.columns[0] if place.columns else place.number
        named[place.file].update(range(place.number - CONTEXT, last + CONTEXT + 1))
    for file, numbers in named.items():
        lines = dict(enumerate(linecache.getlines(file), 1))
        yield trace.Excerpt(file, {number: lines[number].rstrip() for number in sorted(numbers & lines.keys())})
