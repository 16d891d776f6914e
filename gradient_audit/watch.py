"""Watching: hooks on backward passes, parameters and optimizer steps, which fill a `Record` and change no number."""

import functools
import gc
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import count

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd.graph import increment_version
from torch.nn.modules import module as registration
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.edits import follow_parameters, note_clipping, note_unscaling, watch_parameters
from gradient_audit.graph import has_nan, is_zero, leaves_of, nodes_between, nodes_of, parameters_of, tensors_in
from gradient_audit.guard import guarded, replace, watch_calls
from gradient_audit.lineage import CALL, PARAMETER, bit, numbers_in
from gradient_audit.mistakes.raised import trace_error
from gradient_audit.networks import Networks
from gradient_audit.operations import Details
from gradient_audit.places import Place, construction_place, current_callers, current_frames, current_place
from gradient_audit.record import Account, Pass, Record, Step

Limit = Callable[["Watcher", Optimizer | None], None]  # called before each pass, with None, and after each step
MOST_PASSES = 10_000  # that are watched at all: it bounds the memory of an audit
DETAILED = 12  # backward passes with forward passes, terms and lines of operations: two rounds of WGAN's five and one
AGAIN = 4  # likewise, after a line has run a pass or a step for the first time


class Watcher:
    """Fills `record`: hooks on passes, parameters and steps; `.grad` is inspected before each pass and step."""

    watching: "Watcher | None" = None  # the one of this process

    def __init__(self, networks: Networks, limit: Limit | None = None):
        self.networks, self.limit = networks, limit
        self.record = Record()
        self.details = Details(self.record, self.open_accounts)
        self.lineage = self.details.lineage
        self.numbers = count(1)  # of accounts and optimizers
        self.new_parameters = True  # whether there may be parameters without an account
        self.writes_gradients = False  # the script writes to gradients in place
        self.reads_gradients = True  # the audit reads their values: at first, and in such scripts
        self.watched_in_detail = 0  # passes; of those of one step's closure, one
        self.closures = 0  # of steps, that run
        self.lines: set[Place] = set()  # that have run a pass or a step
        self.pauses = ExitStack()  # of the details, while steps run: under a mode, some would raise no version
        self.optimizer_numbers = WeakIdKeyDictionary()
        self.slots: dict[int, list[Account | None]] = {}  # by optimizer: the accounts of its parameters, in their order
        self.constructed: dict[tuple, int] = {}  # by line and parameters: the optimizer's number
        self.shared = functools.cache(frozenset)  # returns one object for equal sets: a long training has few of them
        self.hooks = ExitStack()  # removes them

    def start(self) -> None:
        """Begin to watch; raises RuntimeError if another audit watches: both would replace the same functions."""
        if Watcher.watching is not None:
            raise RuntimeError("another gradient audit is under way in this process; end it before this one begins")
        Watcher.watching = self
        self.details.thread = None if self.limit else threading.get_ident()  # a script may train in another thread
        self.add_hooks()

    @guarded
    def add_hooks(self) -> None:
        self.networks.start(self)
        if self.networks.named is None:
            watch_parameters(self)
        self.watch_autograd("backward", self.begin_pass, self.end_pass, self.limit)
        self.watch_autograd("grad", self.begin_grad, self.end_grad)
        watch_calls(self.hooks, Optimizer, "__init__", self.note_construction)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            watch_calls(self.hooks, nn.utils, name, functools.partial(note_clipping, self))
        watch_calls(self.hooks, torch.amp.GradScaler, "unscale_", functools.partial(note_unscaling, self))
        watch_calls(self.hooks, nn.Module, "requires_grad_", self.note_freezing)
        # The details' hooks and modes would change what is compiled.
        watch_calls(self.hooks, torch, "compile", lambda *_, **__: self.details.stop(for_good=True))
        self.hooks.callback(register_optimizer_step_pre_hook(torch.compiler.disable(self.before_step)).remove)
        self.hooks.callback(register_optimizer_step_post_hook(torch.compiler.disable(self.after_step)).remove)
        self.hooks.callback(registration.register_module_parameter_registration_hook(self.expect_parameters).remove)
        self.hooks.callback(registration.register_module_module_registration_hook(self.expect_parameters).remove)
        modules = (part for module in self.networks.modules() for part in module.modules())
        if any(hasattr(m, "_orig_mod") or m._compiled_call_impl for m in modules):
            self.details.stop(for_good=True)
        self.details.start()

    def remove_hooks(self) -> None:
        Watcher.watching, self.details.thread = None, -1  # that of no thread
        self.details.stop(for_good=True)
        self.details.node_hooks.close()
        self.hooks.close()

    def complete_record(self) -> None:
        self.details.stop(for_good=True)
        self.look_at_parameters()
        built = [event for event in [*self.record.forwards, *self.record.calls] if event.graph]
        if any(node() for event in built[:1] for node in event.graph):
            gc.collect()  # the first is kept, or in a cycle
        for event in built:
            event.gone = not any(node() for node in event.graph)
        parameters = (account.parameter() for account in self.record.accounts.values())
        grown = {self.lineage.memory_of(p) for p in parameters if p is not None and p.grad_fn is not None}
        self.record.grown = [*{memory: place for memory, *_, place in self.lineage.writes if memory in grown}.values()]

    def expect_parameters(self, *_: object) -> None:
        self.new_parameters = True

    @guarded
    def find_optimizers(self) -> list[Optimizer]:
        """Return the optimizers that stepped or hold a watched parameter; wrappers, whose `step` has no hooks, not."""
        self.open_accounts()
        concerned = {*self.record.accounts, *(id(ref()) for p in self.record.passes for ref in p.loose)}
        for thing in [thing for thing in gc.get_objects() if issubclass(type(thing), Optimizer)]:
            if getattr(type(thing).step, "hooked", False) and any(id(p) in concerned for p in parameters_of(thing)):
                self.record.optimizers.setdefault(self.number_of(thing), thing)
        return list(self.record.optimizers.values())

    def number_of(self, optimizer: Optimizer) -> int:
        if optimizer not in self.optimizer_numbers:
            self.optimizer_numbers[optimizer] = next(self.numbers)
        return self.optimizer_numbers[optimizer]

    @guarded
    def note_construction(self, optimizer: Optimizer, *_: object, **__: object) -> None:
        """Give an optimizer the number of an earlier one that was made at the same line for the same parameters."""
        self.record.made[optimizer] = place = construction_place(optimizer)
        self.networks.add_leaves(optimizer)
        self.open_accounts()
        alike = place, frozenset(self.record.numbers_of(parameters_of(optimizer)))
        self.record.given |= alike[1]
        if alike in self.constructed and alike[1]:
            self.optimizer_numbers[optimizer] = number = self.constructed[alike]
            self.record.renewed[number] += 1
            self.record.optimizers[number] = optimizer
        self.constructed[alike] = self.number_of(optimizer)

    @guarded
    def note_freezing(self, module: nn.Module, *_: object, **__: object) -> None:
        self.open_accounts()
        parameters = [*nn.Module.parameters(module)]
        place = None if any(parameter.requires_grad for parameter in parameters) else current_place()
        self.record.frozen |= dict.fromkeys(self.record.numbers_of(parameters), place)

    def open_accounts(self) -> None:
        if not self.new_parameters:
            return
        self.new_parameters = False
        for network in list(self.networks.modules()):
            for parameter in nn.Module.parameters(network):
                if is_lazy(parameter) or not isinstance(parameter, nn.Parameter):  # functional_call puts others there
                    self.new_parameters = True
                else:
                    self.open_account(parameter)

    def open_account(self, parameter: Tensor, number: int = 0) -> None:
        key, accounts = id(parameter), self.record.accounts
        if (account := accounts.get(key)) is None:
            reference = weakref.ref(parameter, lambda _: accounts.pop(key, None))
            account = accounts[key] = Account(number or next(self.numbers), reference)
            self.record.births.setdefault(account.number, self.record.made.get(parameter))
        if account.hook is None and parameter.requires_grad and parameter.is_leaf:
            note = functools.partial(self.note_gradient, account.number)
            account.hook = self.hooks.callback(parameter.register_post_accumulate_grad_hook(note).remove)

    @guarded
    def note_gradient(self, number: int, parameter: Tensor) -> None:
        if parameter.requires_grad and self.details.call and not self.details.is_elsewhere():
            self.details.call.reached.add(number)

    def look_at_parameters(self) -> None:
        self.open_accounts()
        follow_parameters(self)
        for account in list(self.record.accounts.values()):
            if (parameter := account.parameter()) is not None:
                self.open_account(parameter)
                if account.passes:
                    self.detect_cleared_gradient(account, parameter)

    def detect_cleared_gradient(self, account: Account, parameter: Tensor, *, stepping: bool = False) -> None:
        """Forget the passes if the gradient has become None or all zeros since the last look."""
        grad = parameter.grad
        if grad is None:
            account.passes = set()
        elif account.grad is None or account.grad() is not grad or (account.handed and not account.fresh):
            if self.details.active:
                account.passes = self.passes_behind(grad, account)
                reached = (self.record.passes[number].reached for number in account.passes)
                account.handed = any(account.number not in numbers for numbers in reached)
            elif not account.fresh:
                account.passes = set()
            account.grad, account.version, account.zero = weakref.ref(grad), grad._version, is_zero(grad)
        elif (written := grad._version != account.version) or self.reads_gradients:
            # What was all zeros before was cleared if a pass comes next, and clipped or unscaled if a step comes next.
            cleared = is_zero(grad) and (not account.zero or (written and not stepping))
            self.writes_gradients |= written or cleared
            if cleared:
                account.passes = set()

    def passes_behind(self, grad: Tensor, account: Account) -> set[int]:
        """Return the passes that a tensor was computed from; a call of autograd.grad becomes one."""
        calls = [self.record.calls[number] for number in numbers_in(CALL, self.lineage.sources_of(grad))]
        for call in calls:
            if call.number is None:
                call.number, call.reached = len(self.record.passes), set()
                self.record.passes.append(call)
                self.watched_in_detail += not self.closures
            if call.kind == "grad":
                call.reached.add(account.number)
        return {call.number for call in calls}

    def watch_autograd(self, name: str, begin: Callable, end: Callable, limit: Limit | None = None) -> None:
        """Wrap a function of autograd. begin: returns the event and the roots of its graph, or None."""
        original = getattr(torch.autograd, name)
        bind = inspect.signature(original).bind
        note = guarded(lambda of: of.record.lines.update((code.co_filename, n) for code, _, n in current_callers()))

        def watched(*args, **kwargs):
            # A pass inside a pass, as in a reentrant checkpoint, is part of the outer one.
            note(self)
            if self.details.is_elsewhere() or self.details.call:
                return original(*args, **kwargs)
            if limit:
                limit(self, None)
            self.pauses.close()  # a step that raised has left them open
            given = {k: tuple(x) if isinstance(x, Iterator) else x for k, x in bind(*args, **kwargs).arguments.items()}
            with self.details.paused():  # looking at gradients is no operation of the script
                event, roots = begin(**given) or (None, ())
                self.details.call, gradients = event, None
                try:
                    gradients = original(**given)
                    return gradients
                except BaseException as error:
                    if event:
                        self.note_error(event, roots, tensors_in([*given.values()][:1]), error)
                    raise
                finally:
                    self.details.call = None
                    end(event, gradients, **given)

        # A compiled function may call it; `disable` keeps it out of its graph.
        replace(self.hooks, torch.autograd, name, torch.compiler.disable(watched))

    @guarded
    def begin_pass(self, tensors, retain_graph=None, create_graph=False, inputs=None, **_) -> tuple[Pass, list] | None:
        self.details.thread, self.details.steps = threading.get_ident(), 0
        if len(self.record.passes) == MOST_PASSES:
            self.record.closed = True
            return None
        losses = tensors_in(tensors)
        roots = [tensor.grad_fn for tensor in losses if tensor.grad_fn is not None]
        self.look_at_parameters()
        leaves = leaves_of(roots) + [tensor for tensor in losses if tensor.is_leaf] if self.details.active else []
        for leaf in (leaf for leaf in leaves if leaf in self.record.made):  # a parameter beside all networks
            self.open_account(leaf)
        event = Pass("backward", current_place(), create_graph=create_graph, number=len(self.record.passes))
        event.named = self.record.numbers_of(tensors_in(inputs))
        if self.details.active:
            event.terms, event.detailed = self.lineage.terms_of(roots, current_frames()[0].f_code), True
            event.late = self.record.numbers_of(x for x in leaves if inputs is None and not x.requires_grad)
            nodes = nodes_of(roots) if inputs is None else nodes_between(roots, tensors_in(inputs))
            self.note_graph(event, nodes, retain_graph)
            if not self.closures:  # LBFGS keeps the first loss until its step ends
                self.details.follow_graph(event, losses)
            self.details.follow_loss(event, roots)
            event.nan = has_nan(losses)
            loose = [leaf for leaf in leaves if id(leaf) not in self.record.accounts]
            event.loose = [weakref.ref(leaf) for leaf in loose]
            used = {index for index, call in enumerate(self.record.calls) if call.read and call.place == event.place}
            grads = [leaf.grad for leaf in loose if used & {*numbers_in(CALL, self.lineage.sources_of(leaf.grad))}]
            event.added = any(not is_zero(grad) for grad in grads)
            self.lineage.forget_numbers()
            event.cuts = [cut for tensor in losses + loose for cut in self.lineage.memory_of(tensor).cuts]
            event.values = set(numbers_in(PARAMETER, self.lineage.sources_of(losses)))
            self.record.calls.append(event)
        self.record.events.append(event)
        self.record.passes.append(event)
        self.watch_again(event.place)
        return event, roots

    def note_graph(self, event: Pass, nodes: Iterable, retain_graph: bool | None) -> None:
        event.keeps = event.create_graph if retain_graph is None else retain_graph
        event.nodes = {node._sequence_nr() for node in nodes if not hasattr(node, "variable")}
        event.callers = current_callers()

    @guarded
    def end_pass(self, event: Pass, *_: object, **__: object) -> None:
        reached = {key: account for key, account in self.record.accounts.items() if account.number in event.reached}
        event.reached, used = self.shared(frozenset(event.reached)), set()
        for account in reached.values():
            if (grad := getattr(account.parameter(), "grad", None)) is None:
                account.passes = set()  # a hook of the user's has used and cleared it already
                used |= set() if account.stepped else {account.number}
                continue
            account.passes.add(event.number)
            account.fresh, account.grad, account.version = True, weakref.ref(grad), grad._version
            account.zero = self.reads_gradients and is_zero(grad)
            if self.details.active:
                summed = [index for index, call in enumerate(self.record.calls) if call.number in account.passes]
                self.lineage.memory_of(grad).sources = sum(bit(CALL, index) for index in summed)
        if used and not event.raised:
            self.record.events.append(Step("hand", event.place, used, taken={frozenset([event.number]): used}))
        event.loose = [leaf for leaf in event.loose if getattr(leaf(), "grad", None) is not None]
        for leaf in event.loose:
            self.lineage.memory_of(leaf().grad).sources = bit(CALL, len(self.record.calls) - 1)
        self.networks.hold(reached.keys())
        self.watched_in_detail += not self.closures
        self.stop_details()

    def watch_again(self, place: Place) -> None:
        """Watch in detail what follows, if the line has run no pass and no step before."""
        if place not in self.lines:
            self.lines.add(place)
            self.watched_in_detail = min(self.watched_in_detail, DETAILED - AGAIN)
            self.details.start()

    def stop_details(self) -> None:
        """End the details after enough passes, but not in a closure, whose step is still to be seen."""
        if self.watched_in_detail >= DETAILED and not self.closures:
            self.details.stop()
            self.reads_gradients = self.writes_gradients

    @guarded
    def begin_grad(self, outputs, inputs, retain_graph=None, create_graph=False, **_) -> tuple[Pass, list] | None:
        tensors, ends = tensors_in(outputs), tensors_in(inputs)
        # Other kinds of tensors are those of a compiler that derives the graph.
        if any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors + ends):
            return None
        self.open_accounts()
        event = Pass("grad", current_place(), create_graph=bool(create_graph))
        event.functional = any(map(is_functorch_wrapped_tensor, tensors + ends))
        self.watch_again(event.place)
        roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        nodes = nodes_between(roots, ends)
        uses = (child for node in nodes for child, _ in node.next_functions if hasattr(child, "variable"))
        event.reached = self.record.numbers_of(child.variable for child in uses)
        if self.details.active:
            self.note_graph(event, nodes, retain_graph)
        self.record.events.append(event)
        return event, roots

    @guarded
    def end_grad(self, event: Pass | None, gradients: object, inputs, **_) -> None:
        if event and self.details.active:
            self.details.follow_graph(event, gradients)
            sources = self.lineage.sources_of(inputs) | bit(CALL, len(self.record.calls))
            sources |= sum(bit(PARAMETER, number) for number in event.reached)
            self.lineage.derive(gradients, sources, [("penalty-without-graph", event.place)] * (not event.create_graph))
            self.record.calls.append(event)

    @guarded
    def note_error(self, event: Pass, roots: list, losses: list[Tensor], error: BaseException) -> None:
        event.raised = True
        with suppress(AttributeError):  # a node of a kind that keeps its tensors elsewhere
            self.record.errors += trace_error(event, roots, losses, str(error), self.record, self.lineage)

    @guarded
    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Record a step before it runs; one with a closure uses the gradients that each call of the closure leaves."""
        if self.details.is_elsewhere():
            return None
        self.details.steps += 1
        self.pauses.enter_context(self.details.paused())
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            self.record_step(optimizer)
            return None
        self.watched_in_detail += 1

        def watched_closure():
            steps, self.details.steps = self.details.steps, 0
            self.closures += 1
            self.pauses.close()
            try:
                loss = closure()
            finally:
                self.pauses.enter_context(self.details.paused())
                self.details.steps = steps
                self.closures -= 1
            self.record_step(optimizer)
            return loss

        given = {key: watched_closure if value is closure else value for key, value in kwargs.items()}
        return tuple(watched_closure if value is closure else value for value in args), given

    @guarded
    def record_step(self, optimizer: Optimizer) -> None:
        self.open_accounts()
        follow_parameters(self)
        accounts = self.record.accounts_of(parameters_of(optimizer))
        if getattr(optimizer, "found_inf", False):  # GradScaler calls a fused optimizer's step, which skips it itself
            for account, _ in accounts:
                self.record.skipped |= account.passes
                account.version_before = -1
            return
        number, passes, handed = self.number_of(optimizer), self.record.passes, set()
        self.record.optimizers[number] = optimizer
        event = Step("step", current_place(), optimizer=number, inner=self.details.steps > 1)
        self.watch_again(event.place)
        self.slots[number] = [self.record.accounts.get(id(p)) for p in parameters_of(optimizer)]
        self.record.held |= {account.number for account, _ in accounts}
        for account, parameter in accounts:
            self.detect_cleared_gradient(account, parameter, stepping=True)
            account.stepped |= parameter.requires_grad
            account.fresh = False
            account.version_before = -1 if parameter.grad is None else parameter._version
            if parameter.grad is None:
                continue
            event.reached.add(account.number)
            # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
            sources = account.passes | ({len(passes) - 1} if self.details.call else set())
            handed |= sources if account.handed else set()
            if account.clipped & sources and self.record.clips[account.clip] != "scaled":
                self.record.clips[account.clip] = "used"
            if self.details.active and has_nan(parameter.grad):
                event.nan.add(account.number)
            if sources or not is_zero(parameter.grad):
                event.taken[frozenset(sources)].add(account.number)
        for account in self.record.accounts.values() if handed else ():  # whose gradients were handed on
            if account.clipped & handed and self.record.clips[account.clip] != "scaled":
                self.record.clips[account.clip] = "used"
        event.reached = self.shared(frozenset(event.reached))
        event.taken = {passes: self.shared(frozenset(numbers)) for passes, numbers in event.taken.items()}
        self.record.events.append(event)

    def after_step(self, optimizer: Optimizer, _args: tuple, _kwargs: dict) -> None:
        if not self.details.is_elsewhere():
            self.end_step(optimizer)
            if self.limit:
                self.limit(self, optimizer)

    @guarded
    def end_step(self, optimizer: Optimizer) -> None:
        """Note the versions after the step, and raise those that the step changed behind autograd's back."""
        self.details.steps = max(self.details.steps - 1, 0)
        place = current_place()
        for account, parameter in self.record.accounts_of(parameters_of(optimizer)):
            if account.version_before >= 0:
                memory = self.lineage.memory_of(parameter)
                if raised := parameter._version == account.version_before:
                    increment_version(parameter)
                self.lineage.writes.append((memory, account.version_before, "", raised, place))
        self.networks.hold({*map(id, parameters_of(optimizer))})
        if not self.details.steps:
            self.pauses.close()
            self.stop_details()


def _end_in_child() -> None:
    if Watcher.watching:
        Watcher.watching.remove_hooks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)
