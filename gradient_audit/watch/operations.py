"""What is watched in detail, and therefore only at first: single operations, zero_grad(), and when to watch them."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer
from torch.utils import _python_dispatch as dispatch

from gradient_audit.history import Call
from gradient_audit.places import Place
from gradient_audit.trace import Clipped, Compiled, DetailSet, GradientRead, HandStep
from gradient_audit.watch.cuts import Cuts
from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.frames import Lines, current_place, inner_lines, runs_inside
from gradient_audit.watch.gradients import Gradients
from gradient_audit.watch.guard import guarded, watch_calls
from gradient_audit.watch.lineage import REPLACING
from gradient_audit.watch.memory import Memory
from gradient_audit.watch.parameters import Account
from gradient_audit.watch.session import AGAIN, DETAILED
from gradient_audit.watch.sources import CALL
from gradient_audit.watch.splitting import note_total
from gradient_audit.watch.tensors import computes, is_zero, single_operations, storage_of, targets_of, tensors_in

COPIES = (torch.ops.aten.clone, torch.ops.aten.cat)
READING = ("tolist", "numpy")
SCIPY = str(Path("scipy", "optimize"))


class Details(dispatch.TorchDispatchMode):
    """Watches in detail between `start` and `stop`."""

    def __init__(self, gradients: Gradients, forwards: Forwards):
        super().__init__()
        self.gradients, self.forwards, self.lineage = gradients, forwards, forwards.lineage
        self.cuts = Cuts(self.lineage)
        self.parameters, self.session = forwards.parameters, forwards.session
        self.guard, self.activity = self.session.guard, self.session.activity
        self.ended = self.entered = False  # entered: the mode, at least once
        self.home = threading.get_ident()  # `stop` could not leave the mode in another thread
        self.hooks = ExitStack()  # removes those that `start` adds

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return True: torch.compile does not refuse to compile under such a mode."""
        return True

    def start(self) -> None:
        elsewhere = self.home != threading.get_ident()
        # A PyTorch without `_get_current_dispatch_mode` raises before the mode is entered.
        if self.activity.detailed or self.ended or elsewhere or dispatch._get_current_dispatch_mode():
            return
        for kind in (Optimizer, nn.Module):
            watch_calls(self.hooks, kind, "zero_grad", self.gradients.note_zero_grad)
        for name in (*READING, "__repr__", "__format__", "__reduce_ex__"):  # read, printed or saved: no operation
            watch_calls(self.hooks, torch.Tensor, name, functools.partial(self.note_use, name))
        watch_calls(self.hooks, torch.no_grad, "__enter__", self.cuts.enter)
        watch_calls(self.hooks, torch.no_grad, "__exit__", self.cuts.leave)
        watch_calls(self.hooks, torch.set_grad_enabled, "__init__", self.cuts.note_switch)
        watch_calls(self.hooks, torch.Tensor, "detach_", self.cuts.note_detached)
        begin, end = self.forwards.begin_forward, self.forwards.end_forward
        self.hooks.callback(registration.register_module_forward_pre_hook(begin).remove)
        self.hooks.callback(registration.register_module_forward_hook(end, always_call=True).remove)
        self.activity.detailed = self.entered = True
        self.note_detail()
        self.__enter__()

    @guarded
    def note_detail(self) -> None:
        self.session.add(DetailSet())

    def stop(self, *, for_good: bool = False) -> None:
        self.ended |= for_good
        if self.activity.detailed:
            self.note_detail()
        with self.paused():
            self.activity.detailed = False
        self.hooks.close()

    @guarded
    def note_compile(self, *_: object, **__: object) -> None:
        """Watch in detail no longer: hooks and modes would change what is compiled."""
        if not self.ended:
            self.session.add(Compiled(current_place()))
        self.stop(for_good=True)

    def watch_again(self, place: Place, *, new: bool = False) -> None:
        """Watch in detail what follows, if the line has run no pass and no step before, or for another `new` reason."""
        if new or place not in self.activity.lines:
            self.activity.lines.add(place)
            self.activity.spent = min(self.activity.spent, DETAILED - AGAIN)
            self.start()

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

    @guarded
    def note_use(self, name: str, tensor: torch.Tensor, *_: object, **__: object) -> None:
        if self.activity.is_watched():
            if name in READING:
                with self.paused():
                    self.lineage.note_numbers(tensor)
            for number in self.lineage.sources_of(tensor).numbers(CALL):
                self._note_reading_of(number, torch.ops.aten.detach.default, (tensor,))
                call = self.session.history.calls[number]
                if runs_inside(SCIPY) and call.is_pass:  # it steps on the numbers
                    self.session.add(GradientRead(number, "copied"))
                    self.session.add(HandStep(current_place(), frozenset(call.reached), frozenset([number])))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.note_operation(function, args, kwargs or {}, result)
        return result

    @guarded
    def note_operation(self, function: Callable, args: tuple, kwargs: dict, result: object) -> None:
        """Note an operation of a forward pass, or what the script does with gradients."""
        if self.activity.steps or not self.activity.is_watched():  # what a step does is no computation of a loss
            return
        here = inner_lines()
        if not self.forwards.found_nan and computes(function):
            self.forwards.note_nan(here, result, args)
        written = set()
        for given, one in single_operations(function, args, kwargs, result):
            written |= self._note_single(function, given, one, here) if self.lineage.knows(function, given) else set()
        if written:
            self._note_edit(written, is_whole=function in REPLACING)
        if written and not self.forwards.running:
            self.gradients.note_hand_steps(written)

    def _note_single(self, function: Callable, args: tuple, result: object, here: Lines) -> set[Memory]:
        """Note an operation on single tensors; return the memory to which it wrote what comes from gradients."""
        written, read = self.lineage.note(function, args, result, here)
        self.cuts.note(function, args, result, here)
        for number in read.numbers(CALL):
            self._note_reading_of(number, function, args)
        if not self.forwards.running:  # a number inside of a network, as a norm of its features, is no loss
            self.forwards.note_scalar(result, read)
            note_total(self.lineage, function, args, result, here)
        return {memory for memory in written if memory.sources.has(CALL)}

    def _note_reading_of(self, number: int, function: Callable, args: tuple) -> None:
        """Note how an operation reads the gradients of a call."""
        call, leaves = self.session.history.calls[number], self.session.calls[number].leaves
        if {"read", "copied", "for inputs"} <= call.read:
            return
        inputs = [leaf().grad for leaf in leaves if getattr(leaf(), "grad", None) is not None]
        ways = {
            "read": "read" not in call.read and not runs_inside("clip_grad"),
            "copied": "copied" not in call.read and self._copies_gradient(call, function, args),
            "for inputs": bool({*map(storage_of, inputs)} & {*map(storage_of, tensors_in(args))}),
        }
        for how in (how for how, holds in ways.items() if holds and how not in call.read):
            self.session.add(GradientRead(number, how))

    def _gradients(self) -> dict[object, tuple[Account, torch.Tensor]]:
        """Return, by storage, the gradients of the watched parameters, each with its account."""
        grads = [(account, parameter.grad) for account, parameter in self.parameters.living()]
        return {storage_of(grad): (account, grad) for account, grad in grads if grad is not None}

    def _note_edit(self, written: set[Memory], *, is_whole: bool) -> None:
        """Note a write to gradients that a step has used already, as a mask that is applied too late."""
        for account, grad in self._gradients().values() if not runs_inside("clip_grad") else ():
            balance, is_written = self.session.ledger.balances[account.number], self.lineage.memory_of(grad) in written
            account.overwritten |= is_written and is_whole
            is_old = balance.passes and not (balance.fresh or account.overwritten)
            if is_written and is_old and not is_zero(grad):
                self.session.add(Clipped(current_place(), frozenset([account.number]), "edited"))

    def _copies_gradient(self, call: Call, function: Callable, args: tuple) -> bool:
        """Return whether an operation makes a copy of a call's gradient, or writes to what is no gradient of it."""
        into = tensors_in([args[index] for index in targets_of(function) if index < len(args)])
        floats = [tensor for tensor in into if tensor.is_floating_point() and tensor.numel() > 1]
        own = {storage for storage, (account, _) in self._gradients().items() if account.number in call.reached}
        copies = function.overloadpacket in COPIES and any(tensor.numel() > 1 for tensor in tensors_in(args))
        return copies or any(storage_of(tensor) not in own for tensor in floats)
