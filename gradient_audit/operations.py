"""What is watched in detail, and therefore only at first: forward passes, zero_grad() and single operations."""

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from gradient_audit.graph import nodes_of, parameters_of, tensors_in
from gradient_audit.guard import guarded, replace
from gradient_audit.lineage import CALL, FORWARD, Lineage, bit, numbers_in
from gradient_audit.places import current_callers, current_frames, current_place
from gradient_audit.record import Built, Event, Forward, Pass, Record, Step


class Details:
    """Watches in detail between `start` and `stop`, and counts the calls of autograd and the steps that run."""

    def __init__(self, record: Record, before_forward: Callable[[], None]):
        self.record = record
        self.before_forward = before_forward  # called before each forward pass that is not part of another
        self.lineage = Lineage(record.accounts)
        self.active = False
        self.thread: int | None = None  # the one that is watched; None: the first that trains
        self.steps = 0  # of optimizers, that run
        self.call: Pass | None = None  # of autograd, that runs
        self.forwards: list[list[Forward]] = []  # for each forward pass that runs, those recorded inside of it
        self.node_hooks: list = []
        self.outputs: dict[int, Built] = {}  # of a node's sequence number: the event whose output it made
        self.hooks = ExitStack()  # removes those that `start` adds
        self.mode = _Operations(self.note_operation)

    def start(self) -> None:
        _python_dispatch._get_current_dispatch_mode()  # a PyTorch without it raises before the mode is entered
        for kind in (Optimizer, nn.Module):
            replace(self.hooks, kind, "zero_grad", self.watched_zero_grad(kind.zero_grad))
        self.hooks.callback(registration.register_module_forward_pre_hook(self.begin_forward).remove)
        self.hooks.callback(registration.register_module_forward_hook(self.end_forward, always_call=True).remove)
        self.active = True
        self.mode.__enter__()

    def stop(self) -> None:
        self.pause()
        self.active = False
        self.hooks.close()

    def is_elsewhere(self) -> bool:
        """Return whether this is another thread, and not one of autograd's own at work on a watched pass."""
        of_autograd = self.call and isinstance(threading.current_thread(), threading._DummyThread)
        return self.thread not in (None, threading.get_ident()) and not of_autograd

    def pause(self) -> bool:
        """Stop watching operations, as autograd's and the optimizers' own; return whether they were watched."""
        watching = self.active and _python_dispatch._get_current_dispatch_mode() is self.mode
        if watching:
            self.mode.__exit__(None, None, None)
        return watching

    def resume(self) -> None:
        if self.active:
            self.mode.__enter__()

    @contextmanager
    def paused(self) -> Iterator[None]:
        watching = self.pause()
        try:
            yield
        finally:
            if watching:
                self.resume()

    def watched_zero_grad(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def zero_grad(of, *args, **kwargs):
            if self.active and not torch.compiler.is_compiling() and not self.is_elsewhere():
                self.note_zero_grad(of)
            return original(of, *args, **kwargs)

        return zero_grad

    @guarded
    def note_zero_grad(self, of: Optimizer | nn.Module) -> None:
        parameters = nn.Module.parameters(of) if isinstance(of, nn.Module) else parameters_of(of)
        event = Event("zero_grad", current_place(), reached=self.record.numbers_of(parameters))
        self.record.events.append(event)

    @guarded
    def begin_forward(self, _module: nn.Module, _args: tuple) -> None:
        if not (torch.compiler.is_compiling() or self.call or self.is_elsewhere()):
            if not self.forwards:
                self.before_forward()
            self.forwards.append([])

    @guarded
    def end_forward(self, module: nn.Module, _args: tuple, output: object) -> None:
        """Record a forward pass of a network, or one that is not part of another."""
        if torch.compiler.is_compiling() or self.call or not self.forwards or self.is_elsewhere():
            return
        parts = self.forwards.pop()
        tried = type(module).__module__.startswith("torch.nn.utils.")  # a parametrization is, when it is made
        is_network = len(self.forwards) < 3 and any(True for _ in nn.Module.parameters(module))
        if not tried and (is_network or not self.forwards):
            event = Forward("forward", current_place(), module=weakref.ref(module), parts=parts)
            self.follow_graph(event, output)
            self.record.events.append(event)
            self.lineage.derive(output, bit(FORWARD, len(self.record.forwards)))
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
            self.node_hooks.append(node.register_prehook(hook))
            event.graph.append(weakref.ref(hook))
            self.outputs[node._sequence_nr()] = event

    @guarded
    def note_need(self, event: Built, _gradients: tuple) -> None:
        """Note that a pass has come through the graph of an event."""
        event.needed = True
        if self.call and self.call.kind == "grad" and isinstance(event, Forward):
            self.call.through.append(event.module)

    def outputs_in(self, roots: list) -> list[tuple[weakref.ref, set[int]]]:
        """Return the modules whose outputs are in the graph of a loss, each with the accounts that it leads to."""
        made = [(node, event) for node in nodes_of(roots) if (event := self.outputs.get(node._sequence_nr()))]
        for _, event in made:
            event.in_loss = True  # of a forward pass, whether or not its pass comes through them
        several = len(made) > 1  # else nothing leads through one module to another
        return [
            (e.module, self.lineage.reach([node])[0] if several else set())
            for node, e in made
            if isinstance(e, Forward)
        ]

    def note_numbers(self, result: object, sources: int) -> None:
        """Note of the forward passes among the sources that a number with a graph was computed from their output."""
        if sources and torch.is_grad_enabled() and any(tensor.ndim == 0 for tensor in tensors_in(result)):
            for number in numbers_in(FORWARD, sources):
                self.record.forwards[number].scalar = True

    @guarded
    def note_operation(self, function: Callable, args: tuple, result: object) -> None:
        """Note an operation of a forward pass; a write to a parameter outside of one may be a step by hand."""
        if self.call or self.steps or torch.compiler.is_compiling():
            return
        written, read = self.lineage.note(function, args, result, current_frames()[0])
        calls = [self.record.calls[number] for number in numbers_in(CALL, read)]
        for call in calls:
            call.read = True
        if not self.forwards:  # a number inside of a network, as a norm of its features, is no loss
            self.note_numbers(result, read)
        for account in self.record.accounts.values() if written and calls and not self.forwards else ():
            parameter = account.parameter()
            if parameter is not None and self.lineage.memory_of(parameter) in written:
                passes = frozenset(call.number for call in calls if account.number in call.reached)
                place = current_place()
                event = next(reversed(self.record.events), None)
                if event is None or (event.kind, event.place) != ("hand", place):
                    event = Step("hand", place)
                    self.record.events.append(event)
                event.reached.add(account.number)
                event.taken[passes - {None}] = event.taken.get(passes - {None}, frozenset()) | {account.number}


class _Operations(TorchDispatchMode):
    def __init__(self, note: Callable[[Callable, tuple, object], None]):
        super().__init__()
        self.note = note

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Keep torch.compile from refusing to compile under this mode."""
        return True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.note(function, args, result)
        return result
