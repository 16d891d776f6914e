"""Watching: hooks on backward passes, parameters and optimizer steps, which add to a trace and change no number."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from unittest import mock

import torch
from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradient_audit.watch.ending import Ending
from gradient_audit.watch.forwards import Forwards
from gradient_audit.watch.frames import current_lines, current_place, is_users
from gradient_audit.watch.gradients import CLIPPING, Gradients
from gradient_audit.watch.guard import bind, guarded, watch_calls
from gradient_audit.watch.kinds import Kinds
from gradient_audit.watch.lineage import Lineage
from gradient_audit.watch.memory import Write
from gradient_audit.watch.networks import Networks
from gradient_audit.watch.operations import Details
from gradient_audit.watch.optimizers import Optimizers
from gradient_audit.watch.parameters import Parameters
from gradient_audit.watch.passes import Passes
from gradient_audit.watch.session import DETAILED, MOST_DETAILED, WITHOUT_STEP, Running, Session
from gradient_audit.watch.tensors import parameters_of, tensors_in

Limit = Callable[["Watcher", Optimizer | None], None]  # called before each pass, with None, and after each step


class Watcher:
    """Adds the hooks, and removes them."""

    watching: "Watcher | None" = None  # the one of this process

    def __init__(self, named: dict[str, nn.Module] | None, limit: Limit | None = None):
        self.limit, self.session = limit, Session()
        self.guard, self.activity, self.trace = self.session.guard, self.session.activity, self.session.trace
        self.hooks = self.session.hooks
        self.parameters = Parameters(self.session)
        self.optimizers = Optimizers(self.session, self.parameters)
        self.networks = Networks(self.optimizers, named)
        self.lineage = Lineage(self.session, self.parameters)
        self.forwards = Forwards(self.lineage)
        self.gradients = Gradients(self.optimizers, self.lineage)
        self.details = Details(self.gradients, self.forwards)
        self.passes = Passes(self.details)
        self.ending = Ending(self.forwards, self.networks)
        self.kinds = Kinds(self.optimizers, self.forwards)
        self.pauses = ExitStack()  # of the details, while steps run: under a mode, some would raise no version

    def start(self) -> None:
        """Begin to watch; raises RuntimeError if another audit watches: both would replace the same functions."""
        if Watcher.watching is not None:
            raise RuntimeError("another gradient audit is under way in this process; end it before this one begins")
        Watcher.watching = self
        self.activity.thread = None if self.limit else threading.get_ident()  # a script may train in another thread
        self.add_hooks()

    @guarded
    def add_hooks(self) -> None:
        hooks, gradients = self.hooks, self.gradients
        self.networks.start()
        self.parameters.expect(*self.networks.known)
        if self.networks.named is None:
            watch_calls(hooks, nn.Parameter, "__new__", self.parameters.note_new, of_result=True)
        else:
            self.optimizers.search()
        self.watch_autograd("backward", self.passes.begin_backward, self.passes.end_backward)
        self.watch_autograd("grad", self.passes.begin_grad, self.passes.end_grad)
        watch_calls(hooks, Optimizer, "__init__", self.note_optimizer)
        for name in CLIPPING:  # looking at gradients is no operation of the script
            watch_calls(hooks, nn.utils, name, self.details.paused()(gradients.note_clipping))
        watch_calls(hooks, torch.amp.GradScaler, "unscale_", gradients.note_unscaling)
        watch_calls(hooks, torch.amp.GradScaler, "scale", gradients.note_scaling)
        watch_calls(hooks, nn.Module, "requires_grad_", gradients.note_freezing)
        self.passes.measure.start(hooks)
        watch_calls(hooks, torch, "compile", self.details.note_compile)
        hooks.callback(register_optimizer_step_pre_hook(torch.compiler.disable(self.begin_step)).remove)
        hooks.callback(register_optimizer_step_post_hook(torch.compiler.disable(self.after_step)).remove)
        modules = (part for module in self.networks.known for part in module.modules())
        if any(hasattr(m, "_orig_mod") or m._compiled_call_impl for m in modules):
            self.details.note_compile()
        self.details.start()

    def remove_hooks(self) -> None:
        Watcher.watching, self.activity.thread = None, -1  # that of no thread
        self.details.stop(for_good=True)
        self.forwards.hooks.close()
        self.hooks.close()

    def conclude(self, trace: TracebackType | None, *, ended: bool) -> dict[str, nn.Module]:
        """Add the events of the end; return the networks. trace: of what the script raised. ended: by itself."""
        self.optimizers.search()
        self.gradients.note_hand_steps()
        self.details.stop(for_good=True)
        self.gradients.look_at_all()
        whole = ended and self.limit is not None
        return self.ending.conclude(trace, by_itself=ended, whole=whole)

    @guarded
    def note_optimizer(self, optimizer: Optimizer, *_: object, **__: object) -> None:
        self.networks.add_leaves(optimizer)
        self.optimizers.note_construction(optimizer)

    @guarded
    def note_call(self, name: str, losses: tuple) -> None:
        """Note the lines that call autograd. The first thread to go backward is the one that is watched."""
        self.ending.lines.update((line[0].co_filename, line[2]) for line in current_lines() if is_users(line))
        with self.activity.choice:
            if name == "backward" and self.activity.thread is None and not self.activity.call:
                self.activity.thread = threading.get_ident()
        self.parameters.note_elsewhere(losses)

    def watch_autograd(self, name: str, begin: Callable, end: Callable) -> None:
        """Wrap a function of autograd. begin: returns the call, or None."""
        original = getattr(torch.autograd, name)

        def watched(*args, **kwargs):
            # A pass inside a pass, as in a reentrant checkpoint, is part of the outer one.
            bound = bind(original, args, kwargs)  # None: it will raise
            self.note_call(name, bound.args[:1] if bound else ())
            if self.activity.is_elsewhere() or self.activity.call or not bound:
                return original(*args, **kwargs)
            if self.limit and name == "backward":
                self.limit(self, None)
            if self.networks.named is None and not self.limit and self.activity.detailed:
                self.parameters.refuse_older(bound.args)
            self.pauses.close()  # a step that raised has left them open
            given = {k: tuple(x) if isinstance(x, Iterator) else x for k, x in bound.arguments.items()}
            with self.details.paused():
                self.activity.call = call = begin(**given)
                results = None
                try:
                    results = original(**given)
                    return results
                except BaseException as error:
                    self.note_error(call, [*given.values()][:1], error)
                    raise
                finally:
                    self.activity.call = None
                    end(call, results, **given)
                    self.note_end(call)

        # A compiled function may call it; `disable` keeps it out of its graph.
        self.hooks.enter_context(mock.patch.object(torch.autograd, name, torch.compiler.disable(watched)))

    @guarded
    def note_error(self, call: Running | None, losses: list, error: BaseException) -> None:
        if call:
            call.raised = True
            self.passes.errors.note(call, tensors_in(losses), error)

    @guarded
    def note_end(self, call: Running | None) -> None:
        """Hold the networks that a pass has reached, and watch in detail no longer if there were enough passes."""
        if call:
            self.passes.errors.note_hidden_writes(call)
        if call and self.networks.named is None:
            crossed = self.session.history.calls[call.number].began.crossed  # by autograd.grad
            self.networks.hold(self.parameters.keys_of(call.reached | crossed))
        if call and call.kind == "backward":
            if self.kinds.note(call):
                self.details.watch_again(call.place, new=True)
            self.stop_if_spent(WITHOUT_STEP)

    def stop_if_spent(self, passes: int = DETAILED) -> None:
        """Watch in detail no longer after enough passes, or after more if gradients wait: for a step, or a reading."""
        activity = self.activity
        if not activity.detailed or activity.spent < passes or activity.closures:  # a closure's step is still to come
            return
        if activity.spent >= MOST_DETAILED or not self.kinds.any_waits(by_hand=False):
            activity.reads_values = activity.writes  # from now on, only where they must be
            self.details.stop()

    @guarded
    def begin_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Note a step before it runs; one with a closure uses the gradients that each call of the closure leaves."""
        if self.activity.is_elsewhere():
            return self.parameters.refuse_elsewhere(optimizer)
        self.activity.steps += 1
        self.pauses.enter_context(self.details.paused())
        bound = bind(type(optimizer).step, args, kwargs)
        given = bound.arguments if bound else kwargs
        closure = given.get("closure") or next(iter([*given.values()][1:]), None)
        if not callable(closure) or isinstance(closure, nn.Module):
            self.note_step(optimizer)
            return None
        self.activity.spent += 1
        self.gradients.note_versions(optimizer)
        first = iter([self.gradients.note_climb])

        def watched_closure():
            for note_climb in first:
                note_climb()
            steps, self.activity.steps = self.activity.steps, 0
            self.activity.closures += 1
            self.pauses.close()
            try:
                loss = closure()
            finally:
                self.pauses.enter_context(self.details.paused())
                self.activity.steps = steps
                self.activity.closures -= 1
            self.note_step(optimizer)
            return loss

        given = {key: watched_closure if value is closure else value for key, value in kwargs.items()}
        return tuple(watched_closure if value is closure else value for value in args), given

    @guarded
    def note_step(self, optimizer: Optimizer) -> None:
        if not getattr(optimizer, "found_inf", False):
            self.details.watch_again(current_place())
        self.gradients.note_step(optimizer)

    def after_step(self, optimizer: Optimizer, _args: tuple, _kwargs: dict) -> None:
        """Note that a step has ended, and ask the limit, which may raise."""
        if not self.activity.is_elsewhere():
            self.end_step(optimizer)
            if self.limit:
                self.limit(self, optimizer)

    @guarded
    def end_step(self, optimizer: Optimizer) -> None:
        """Note what the step has written to."""
        self.activity.steps = max(self.activity.steps - 1, 0)
        place = current_place()
        for account, parameter in self.parameters.accounts_of(parameters_of(optimizer)):
            if (before := account.version_before) >= 0:
                node = torch.autograd._get_sequence_nr()  # the next one
                hidden = node if parameter._version == before else 0  # as of a fused optimizer
                account.stepped = account.stepped if hidden else node
                self.lineage.writes.append(Write(self.lineage.memory_of(parameter), before, "", place, hidden))
                account.version_before = -1
        self.networks.hold({*map(id, parameters_of(optimizer))})
        if not self.activity.steps:
            self.pauses.close()
            self.stop_if_spent()


def _end_in_child() -> None:
    if Watcher.watching:
        Watcher.watching.remove_hooks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)
