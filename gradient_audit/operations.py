"""What is watched in detail, and therefore only at first: forward passes, zero_grad() and single operations."""

import functools
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer
from torch.utils import _python_dispatch as dispatch

from gradient_audit.graph import has_nan, is_zero, parameters_of, storage_of, tensors_in, written_arguments
from gradient_audit.guard import guard_hooks, watch_calls
from gradient_audit.lineage import CALL, FORWARD, GRAPH, PARAMETER, REPLACING, bit, numbers_in
from gradient_audit.places import Place, current_callers, current_frames, current_place, expression_place, runs_inside
from gradient_audit.record import Built, Event, Forward, Pass, Step

COPIES = (torch.ops.aten.clone, torch.ops.aten.cat)


@guard_hooks
class Details(dispatch.TorchDispatchMode):
    """Watches in detail between `start` and `stop`, and counts the calls of autograd and the steps that run."""

    def __init__(self, watcher: object):
        super().__init__()
        self.record, self.activity, self.lineage = watcher.record, watcher.activity, watcher.lineage
        self.open_accounts = watcher.accounts.open_all
        self.ended = self.entered = False  # entered: the mode, at least once
        self.home = threading.get_ident()  # `stop` could not leave the mode in another thread
        self.forwards: list[list[Forward]] = []  # for each forward pass that runs, those recorded inside of it
        self.node_hooks = ExitStack()  # removes them
        self.outputs: dict[int, list[Built]] = defaultdict(list)  # by a node's sequence number: whose output it is
        self.hooks = ExitStack()  # removes those that `start` adds

    @classmethod
    def is_infra_mode(cls) -> bool:  # torch.compile does not refuse to compile under such a mode
        return True

    def start(self) -> None:
        elsewhere = self.home != threading.get_ident()
        # A PyTorch without `_get_current_dispatch_mode` raises before the mode is entered.
        if self.activity.detailed or self.ended or elsewhere or dispatch._get_current_dispatch_mode():
            return
        for kind in (Optimizer, nn.Module):
            watch_calls(self.hooks, kind, "zero_grad", self.note_zero_grad)
        for name in ("tolist", "numpy"):
            watch_calls(self.hooks, torch.Tensor, name, self.note_reading)
        self.hooks.callback(registration.register_module_forward_pre_hook(self.begin_forward).remove)
        self.hooks.callback(registration.register_module_forward_hook(self.end_forward, always_call=True).remove)
        self.activity.detailed = self.entered = True
        self.__enter__()

    def stop(self, *, for_good: bool = False) -> None:
        self.ended |= for_good
        with self.paused():
            self.activity.detailed = False
        self.hooks.close()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Watch no operations, as autograd's own."""
        watching = self.entered and dispatch._get_current_dispatch_mode() is self
        if watching:
            self.__exit__(None, None, None)
        try:
            yield
        finally:
            if watching and self.activity.detailed:
                self.__enter__()

    def note_zero_grad(self, of: Optimizer | nn.Module, *_: object, **__: object) -> None:
        if self.activity.is_watched():
            parameters = nn.Module.parameters(of) if isinstance(of, nn.Module) else parameters_of(of)
            self.record.events.append(Event("zero_grad", current_place(), self.record.numbers_of(parameters)))

    def note_reading(self, tensor: torch.Tensor, *_: object, **__: object) -> None:
        if self.activity.is_watched():
            with self.paused():
                self.lineage.note_numbers(tensor)

    def begin_forward(self, _module: nn.Module, _args: tuple) -> None:
        if self.activity.is_watched():
            self.open_accounts()
            self.forwards.append([])

    def end_forward(self, module: nn.Module, _args: tuple, output: object) -> None:
        """Record a forward pass of a network, or one that is not part of another."""
        if not self.forwards or not self.activity.is_watched():
            return
        parts = self.forwards.pop()
        tried = type(module).__module__.startswith("torch.nn.utils.")  # a parametrization is, when it is made
        is_network = len(self.forwards) < 3 and any(True for _ in nn.Module.parameters(module))
        if not tried and (is_network or not self.forwards):
            event = Forward("forward", current_place(), module=weakref.ref(module), parts=parts)
            event.blind = not torch.is_grad_enabled()
            event.checkpointed = event.blind and runs_inside(torch.utils.checkpoint.__file__)
            event.frozen = not any(parameter.requires_grad for parameter in nn.Module.parameters(module))
            self.follow_graph(event, output)
            self.record.events.append(event)
            event.values = {*numbers_in(PARAMETER, self.lineage.sources_of(output))}
            self.lineage.derive(output, bit(FORWARD, len(self.record.forwards)) | bit(GRAPH, len(self.record.forwards)))
            self.record.forwards.append(event)
            parts = [*parts, event]
        if self.forwards:
            self.forwards[-1] += parts
        else:
            self.note_numbers(output, self.lineage.sources_of([output]))

    def follow_graph(self, event: Built, output: object) -> None:
        """Note whether a backward pass comes through the graph of the output, and how long the graph exists."""
        event.callers = current_callers()
        for node in {tensor.grad_fn for tensor in tensors_in(output)} - {None}:
            hook = functools.partial(self.note_need, event)
            self.node_hooks.callback(node.register_prehook(hook).remove)
            event.graph.append(weakref.ref(hook))
            self.outputs[node._sequence_nr()].append(event)  # of a module, and of the one around it

    def follow_loss(self, event: Pass, nodes: list) -> None:
        """Watch for the line whose gradient is NaN first, and note the modules whose outputs are in the graph."""
        for node in nodes:
            if self.record.nan is None and not hasattr(node, "variable") and (place := self.lineage.line_of(node)):
                self.node_hooks.callback(node.register_hook(functools.partial(self.note_nan, place)).remove)
            for built in self.outputs.get(node._sequence_nr(), ()):
                if isinstance(built, Forward):
                    built.in_loss = event  # whether or not its pass comes through them
                    event.outputs.append((built.module, self.lineage.reach([node])))

    def note_nan(self, place: Place, results: object, given: object) -> None:
        if self.record.nan is None and not self.activity.measuring and has_nan(results) and not has_nan(given):
            self.record.nan = place

    def note_need(self, event: Built, gradients: tuple) -> None:
        """Note that a pass has come through the graph of an event, and in which direction it moves the output."""
        event.needed |= not self.activity.measuring
        if self.activity.call and self.activity.call.number is not None and isinstance(event, Forward):
            moved = [gradient.detach() for gradient in gradients if gradient is not None and not gradient.is_meta]
            size = sum(float(gradient.abs().sum()) for gradient in moved)
            event.directions[self.activity.call.number] = sum(float(gradient.sum()) for gradient in moved) / (size or 1)

    def note_numbers(self, result: object, sources: int) -> None:
        """Note of the forward passes among the sources that a number with a graph was computed from their output."""
        if sources and torch.is_grad_enabled() and any(tensor.ndim == 0 for tensor in tensors_in(result)):
            for number in numbers_in(GRAPH, sources):
                self.record.forwards[number].scalar = True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.note_operation(function, args, result)
        return result

    def note_operation(self, function: Callable, args: tuple, result: object) -> None:
        """Note an operation of a forward pass; a write to a parameter outside of one may be a step by hand."""
        if self.activity.steps or not self.activity.is_watched():  # what a step does is no computation of a loss
            return
        frame = current_frames()[0]
        has_numbers = tensors_in(args) and "empty" not in function.overloadpacket.__name__
        if has_numbers and self.record.nan is None and has_nan(result):
            self.note_nan(expression_place(frame.f_code, frame.f_lasti, frame.f_lineno), result, args)
        if not self.lineage.knows(function, args):
            return
        written, read = self.lineage.note(function, args, result, frame)
        calls = [self.record.calls[number] for number in numbers_in(CALL, read)]
        for call in calls:
            call.read = call.read or not runs_inside("clip_grad")
            call.copied = call.copied or self.copies_gradient(function, args)
            inputs = [leaf().grad for leaf in call.loose if getattr(leaf(), "grad", None) is not None]
            call.for_inputs |= bool({*map(storage_of, inputs)} & {*map(storage_of, tensors_in(args))})
        if not self.forwards:  # a number inside of a network, as a norm of its features, is no loss
            self.note_numbers(result, read)
        if function not in REPLACING and any(numbers_in(CALL, memory.sources) for memory in written):
            self.note_edit(written)
        for account in self.record.accounts.values() if written and calls and not self.forwards else ():
            parameter = account.parameter()
            if parameter is not None and self.lineage.memory_of(parameter) in written:
                passes = frozenset(call.number for call in calls if account.number in call.reached)
                events, place = self.record.events, current_place()
                if (events[-1].kind, events[-1].place) != ("hand", place):
                    events.append(Step("hand", place))
                events[-1].reached.add(account.number)
                events[-1].taken[passes - {None}].add(account.number)

    def gradients(self) -> dict:
        """Return, by storage, the gradients of the watched parameters, each with its account."""
        found = [(account, getattr(account.parameter(), "grad", None)) for account in self.record.accounts.values()]
        return {storage_of(grad): (account, grad) for account, grad in found if grad is not None}

    def note_edit(self, written: list) -> None:
        """Note a write to gradients that a step has used already, as a mask that is applied too late."""
        for account, grad in self.gradients().values() if not runs_inside("clip_grad") else ():
            balance = self.record.ledger.balances[account.number]
            if self.lineage.memory_of(grad) in written and balance.passes and not (balance.fresh or is_zero(grad)):
                self.record.ledger.clip(current_place(), {account.number}, "edited")

    def copies_gradient(self, function: Callable, args: tuple) -> bool:
        """Return whether an operation that reads a gradient makes a copy of it, or writes into another tensor."""
        into = tensors_in([args[index] for index in written_arguments(function) if index < len(args)])
        floats = [tensor for tensor in into if tensor.is_floating_point() and tensor.numel() > 1]
        gradients = self.gradients()
        return function.overloadpacket in COPIES or any(storage_of(tensor) not in gradients for tensor in floats)
