"""Watching: hooks on backward passes, parameters and optimizer steps, which fill a `Record` and change no number."""

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from unittest import mock

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradient_audit.accounts import Accounts
from gradient_audit.budget import AGAIN, DETAILED, MOST_PASSES, Activity
from gradient_audit.graph import has_nan, is_zero, nodes_between, nodes_of, parameters_of, tensors_in
from gradient_audit.guard import bind, guard_hooks, guarded, watch_calls
from gradient_audit.lineage import CALL, PARAMETER, Lineage, bit, numbers_in
from gradient_audit.measure import Measure
from gradient_audit.mistakes.raised import trace_error
from gradient_audit.networks import Networks
from gradient_audit.operations import Details
from gradient_audit.places import Place, current_callers, current_frames, current_place, user_frames
from gradient_audit.record import Pass, Record, Step

Limit = Callable[["Watcher", Optimizer | None], None]  # called before each pass, with None, and after each step


@guard_hooks
class Watcher:
    """Hooks on passes, parameters and steps. They say what happened; the record and its ledger keep it."""

    watching: "Watcher | None" = None  # the one of this process

    def __init__(self, named: dict[str, nn.Module] | None, limit: Limit | None = None):
        self.limit, self.record, self.activity = limit, Record(), Activity()
        self.hooks = ExitStack()  # removes them
        self.networks = Networks(self, named)
        self.lineage = Lineage(self.record.accounts)
        self.accounts = Accounts(self)
        self.details = Details(self)
        self.measure = Measure(self.activity, self.record)
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
        self.networks.start()
        self.accounts.expect(*self.networks.known)
        if self.networks.named is None:
            watch_calls(self.hooks, nn.Parameter, "__new__", self.accounts.note_parameter, of_result=True)
        else:
            self.accounts.search_optimizers()
        self.watch_autograd("backward", self.begin_pass, self.end_pass, self.limit)
        self.watch_autograd("grad", self.begin_grad, self.end_grad)
        watch_calls(self.hooks, Optimizer, "__init__", self.accounts.note_construction)
        for name in ("clip_grad_norm_", "clip_grad_value_"):  # looking at gradients is no operation of the script
            watch_calls(self.hooks, nn.utils, name, self.details.paused()(self.accounts.note_clipping))
        watch_calls(self.hooks, torch.amp.GradScaler, "unscale_", self.accounts.note_unscaling)
        watch_calls(self.hooks, torch.amp.GradScaler, "scale", self.accounts.note_scaling)
        watch_calls(self.hooks, nn.Module, "requires_grad_", self.accounts.note_freezing)
        self.measure.start(self.hooks)
        # The details' hooks and modes would change what is compiled.
        watch_calls(self.hooks, torch, "compile", lambda *_, **__: self.details.stop(for_good=True))
        self.hooks.callback(register_optimizer_step_pre_hook(torch.compiler.disable(self.begin_step)).remove)
        self.hooks.callback(register_optimizer_step_post_hook(torch.compiler.disable(self.after_step)).remove)
        modules = (part for module in self.networks.known for part in module.modules())
        if any(hasattr(m, "_orig_mod") or m._compiled_call_impl for m in modules):
            self.details.stop(for_good=True)
        self.details.start()

    def remove_hooks(self) -> None:
        Watcher.watching, self.activity.thread = None, -1  # that of no thread
        self.details.stop(for_good=True)
        self.details.node_hooks.close()
        self.hooks.close()

    def complete_record(self) -> None:
        self.details.stop(for_good=True)
        self.accounts.look_at_all()
        built = [event for event in [*self.record.forwards, *self.record.calls] if event.graph]
        if any(node() for event in built[:1] for node in event.graph):
            gc.collect()  # the first is kept, or in a cycle
        for event in built:
            event.gone = not any(node() for node in event.graph)
        self.record.copied = self.accounts.copied()

    def note_call(self, name: str) -> None:
        """Note the lines that call autograd. The first thread to go backward is the one that is watched."""
        self.record.lines.update((code.co_filename, number) for code, _, number in current_callers())
        with self.activity.choice:
            if name == "backward" and self.activity.thread is None and not self.activity.call:
                self.activity.thread = threading.get_ident()

    def watch_autograd(self, name: str, begin: Callable, end: Callable, limit: Limit | None = None) -> None:
        """Wrap a function of autograd. begin: returns the event, or None."""
        original = getattr(torch.autograd, name)

        def watched(*args, **kwargs):
            # A pass inside a pass, as in a reentrant checkpoint, is part of the outer one.
            self.note_call(name)
            bound = bind(original, args, kwargs)  # None: it will raise
            if self.activity.is_elsewhere() or self.activity.call or not bound:
                return original(*args, **kwargs)
            if limit:
                limit(self, None)
            self.pauses.close()  # a step that raised has left them open
            given = {k: tuple(x) if isinstance(x, Iterator) else x for k, x in bound.arguments.items()}
            with self.details.paused():
                self.activity.call = event = begin(**given)
                gradients = None
                try:
                    gradients = original(**given)
                    return gradients
                except BaseException as error:
                    if event:
                        self.note_error(event, tensors_in([*given.values()][:1]), error)
                    raise
                finally:
                    self.activity.call = None
                    end(event, gradients, **given)

        # A compiled function may call it; `disable` keeps it out of its graph.
        self.hooks.enter_context(mock.patch.object(torch.autograd, name, torch.compiler.disable(watched)))

    def begin_pass(
        self, tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None, **_
    ) -> Pass | None:
        self.activity.steps = 0
        if len(self.record.passes) == MOST_PASSES:
            self.record.closed = True
            return None
        losses = tensors_in(tensors)
        self.accounts.look_at_all()
        nodes = [*nodes_of(loss.grad_fn for loss in losses)] if self.activity.detailed else []
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        leaves += [tensor for tensor in losses if tensor.is_leaf and self.activity.detailed]
        for leaf in (leaf for leaf in leaves if leaf in self.record.made):  # a parameter beside all networks
            self.accounts.open(leaf)
        event = Pass("backward", current_place(), create_graph=create_graph, number=len(self.record.passes))
        event.named = self.record.numbers_of(tensors_in(inputs))
        if self.activity.detailed:
            terms, event.detailed = self.lineage.terms_of(losses, current_frames()[0].f_code), True
            event.terms = [term for term, _ in terms]
            accounts = self.record.accounts_of(leaf for leaf in leaves if leaf.requires_grad)
            parameters = {a.number: leaf for a, leaf in accounts if inputs is None or a.number in event.named}
            given = grad_tensors if isinstance(grad_tensors, list | tuple) else [grad_tensors] * len(losses)
            ways = [(term, way) for term, way in terms if way]
            self.measure.begin(event, nodes, (losses, given), ways, parameters, self.lineage.writes)
            self.note_graph(event, nodes if inputs is None else nodes_between(losses, tensors_in(inputs)), retain_graph)
            self.lineage.passed |= dict.fromkeys(event.nodes, event)
            if not self.activity.closures:  # LBFGS keeps the first loss until its step ends
                self.details.follow_graph(event, losses)
            self.details.follow_loss(event, nodes)
            event.nan = has_nan(losses)
            loose = [leaf for leaf in leaves if id(leaf) not in self.record.accounts]
            event.loose = [weakref.ref(leaf) for leaf in loose]
            grads = [leaf.grad for leaf in loose if leaf.grad is not None and not is_zero(leaf.grad)]
            before = [self.record.calls[index] for index in numbers_in(CALL, self.lineage.sources_of(grads))]
            event.added = any(call.for_inputs and call.place == event.place for call in before)
            self.lineage.forget_numbers()
            event.cuts = [cut for tensor in losses + loose for cut in self.lineage.memory_of(tensor).cuts]
            event.values = set(numbers_in(PARAMETER, self.lineage.sources_of(losses)))
            self.record.calls.append(event)
        self.record.events.append(event)
        self.record.passes.append(event)
        self.watch_again(event.place)
        return event

    def note_graph(self, event: Pass, nodes: Iterable, retain_graph: bool | None) -> None:
        event.keeps = event.create_graph if retain_graph is None else retain_graph
        event.nodes = {node._sequence_nr() for node in nodes if not hasattr(node, "variable")}
        event.callers = current_callers()

    def end_pass(self, event: Pass, *_: object, **__: object) -> None:
        reached = [account for account in self.record.accounts.values() if account.number in event.reached]
        grads = [(account, getattr(account.parameter(), "grad", None)) for account in reached]
        dropped = {account.number for account, grad in grads if grad is None}  # a hook has used and cleared it already
        event.reached, zeros, ledger = self.accounts.shared(frozenset(event.reached)), {}, self.record.ledger
        grads = [(account, grad) for account, grad in grads if grad is not None]
        for account, grad in grads:
            account.grad, account.version = weakref.ref(grad), grad._version
            zeros[account.number] = self.activity.reads_values and is_zero(grad)
        ledger.add(event.number, zeros, dropped)
        self.measure.restore()
        for account, grad in grads if self.activity.detailed else ():
            passes = ledger.balances[account.number].passes
            summed = [index for index, call in enumerate(self.record.calls) if call.number in passes]
            self.lineage.memory_of(grad).sources = sum(bit(CALL, index) for index in summed)
        used = {number for number in dropped if not ledger.balances[number].stepped}
        if used and not event.raised:
            self.record.events.append(Step("hand", event.place, used, taken={frozenset([event.number]): used}))
        event.loose = [leaf for leaf in event.loose if getattr(leaf(), "grad", None) is not None]
        for leaf in event.loose:
            self.lineage.memory_of(leaf().grad).sources = bit(CALL, len(self.record.calls) - 1)
        self.networks.hold({id(account.parameter()) for account in reached})
        self.activity.spent += not self.activity.closures
        self.end_detail()

    def watch_again(self, place: Place) -> None:
        """Watch in detail what follows, if the line has run no pass and no step before."""
        if place not in self.activity.lines:
            self.activity.lines.add(place)
            self.activity.spent = min(self.activity.spent, DETAILED - AGAIN)
            self.details.start()

    def end_detail(self) -> None:
        """Watch in detail no longer, after enough passes; from then on values are read only where they must be."""
        if self.activity.spent >= DETAILED and not self.activity.closures:  # the step of a closure is still to be seen
            self.activity.reads_values = self.activity.writes
            self.details.stop()

    def begin_grad(self, outputs, inputs, retain_graph=None, create_graph=False, **_) -> Pass | None:
        tensors, ends = tensors_in(outputs), tensors_in(inputs)
        # Other kinds of tensors are those of a compiler that derives the graph.
        if any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors + ends):
            return None
        self.accounts.open_all()
        event = Pass("grad", current_place(), create_graph=bool(create_graph))
        arguments = (next(iter(frame.f_locals.values()), None) for frame in user_frames())
        event.needed = any(isinstance(first, FunctionCtx) for first in arguments)  # by an adjoint, for its own result
        event.functional = any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors + ends))
        self.watch_again(event.place)
        nodes = nodes_between(tensors, ends)
        uses = (child for node in nodes for child, _ in node.next_functions if hasattr(child, "variable"))
        event.reached = self.record.numbers_of(child.variable for child in uses)
        if self.activity.detailed:
            self.note_graph(event, nodes, retain_graph)
        self.record.events.append(event)
        return event

    def end_grad(self, event: Pass | None, gradients: object, inputs, **_) -> None:
        if event and self.activity.detailed:
            self.details.follow_graph(event, gradients)
            sources = self.lineage.sources_of(inputs) | bit(CALL, len(self.record.calls))
            sources |= sum(bit(PARAMETER, number) for number in event.reached)
            self.lineage.derive(gradients, sources, [("penalty-without-graph", event.place)] * (not event.create_graph))
            self.record.calls.append(event)

    def note_error(self, event: Pass, losses: list[Tensor], error: BaseException) -> None:
        event.raised = True
        roots = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
        with suppress(AttributeError):  # a node of a kind that keeps its tensors elsewhere
            self.record.errors += trace_error(event, roots, losses, str(error), self.record, self.lineage)

    def begin_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Record a step before it runs; one with a closure uses the gradients that each call of the closure leaves."""
        if self.activity.is_elsewhere():
            return None
        self.activity.steps += 1
        self.pauses.enter_context(self.details.paused())
        bound = bind(type(optimizer).step, args, kwargs)
        given = bound.arguments if bound else kwargs
        closure = given.get("closure") or next(iter([*given.values()][1:]), None)
        if not callable(closure) or isinstance(closure, nn.Module):
            self.accounts.note_step(optimizer)
            return None
        self.activity.spent += 1

        def watched_closure():
            steps, self.activity.steps = self.activity.steps, 0
            self.activity.closures += 1
            self.pauses.close()
            try:
                loss = closure()
            finally:
                self.pauses.enter_context(self.details.paused())
                self.activity.steps = steps
                self.activity.closures -= 1
            self.accounts.note_step(optimizer)
            return loss

        given = {key: watched_closure if value is closure else value for key, value in kwargs.items()}
        return tuple(watched_closure if value is closure else value for value in args), given

    def after_step(self, optimizer: Optimizer, _args: tuple, _kwargs: dict) -> None:
        if not self.activity.is_elsewhere():
            self.end_step(optimizer)
            if self.limit:
                self.limit(self, optimizer)

    def end_step(self, optimizer: Optimizer) -> None:
        """Note the versions after the step, and raise those that the step changed behind autograd's back."""
        self.activity.steps = max(self.activity.steps - 1, 0)
        place = current_place()
        for account, parameter in self.record.accounts_of(parameters_of(optimizer)):
            if account.version_before >= 0:
                memory = self.lineage.memory_of(parameter)
                if raised := parameter._version == account.version_before:
                    torch.autograd.graph.increment_version(parameter)
                self.lineage.writes.append((memory, account.version_before, "", raised, place))
                account.version_before = -1
        self.networks.hold({*map(id, parameters_of(optimizer))})
        if not self.activity.steps:
            self.pauses.close()
            self.end_detail()


def _end_in_child() -> None:
    if Watcher.watching:
        Watcher.watching.remove_hooks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)
