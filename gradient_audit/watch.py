"""Watching: hooks on backward passes, parameters and optimizer steps, which fill a `Record` and change no number."""

import functools
import gc
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import count

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.nn.modules import module as registration
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from gradient_audit.graph import is_zero, leaves_between, leaves_of, parameters_of, tensors_in
from gradient_audit.guard import guarded, replace
from gradient_audit.lineage import CALL, FORWARD, PARAMETER, bit, numbers_in, of_kind
from gradient_audit.networks import Networks
from gradient_audit.operations import Details
from gradient_audit.overwritten import MESSAGE, trace_overwritten
from gradient_audit.places import construction_place, current_frames, current_place
from gradient_audit.private import OPERATIONS, OVERWRITTEN, missing_parts
from gradient_audit.record import Account, Built, Pass, Record, Step

Limit = Callable[["Watcher", Optimizer | None], None]
"""Called before each backward pass, with None, and after each step; what it raises ends the script under the audit."""
DETAILED = 12  # backward passes with forward passes, terms and lines of operations: two rounds of WGAN's five and one


class Watcher:
    """Fills `record` between `start` and `stop`.

    `torch.autograd.backward`, which `Tensor.backward` calls, is wrapped. Hooks on the parameters record which of them a
    pass reached, and step hooks on the optimizers which gradients were used. A gradient can be cleared in too many ways
    to watch each of them, so `.grad` is inspected before every pass and step.
    """

    watching: "Watcher | None" = None  # the one of this process

    def __init__(self, networks: Networks, limit: Limit | None = None):
        self.networks, self.limit = networks, limit
        self.record = Record()
        self.details = Details(self.record, self.open_accounts)
        self.lineage = self.details.lineage
        self.numbers = count(1)  # of accounts and optimizers
        self.new_parameters = True  # whether there may be parameters without an account
        self.writes_gradients = False  # the script writes to gradients in place
        self.hides_writes = False  # and behind their versions
        self.raised_versions: set[int] = set()  # accounts whose version the audit has raised in place of an optimizer
        self.resumes: list[bool] = []  # of the steps that run: whether the details go on after them
        self.watched_in_detail = 0  # passes; of those of one step's closure, one
        self.closure_calls = 0  # of the step that runs
        self.optimizer_numbers = WeakIdKeyDictionary()
        self.constructed: dict[tuple, tuple[int, int]] = {}  # by line and parameters: the number, the passes until then
        self.sets: dict[frozenset[int], frozenset[int]] = {}  # those of parameters that many events share
        self.originals = torch.autograd.backward, torch.autograd.grad, torch.compile
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
        self.record.missing = missing_parts()
        self.networks.start(self)
        # A compiled function may call these; `disable` keeps them out of its graph.
        replace(self.hooks, torch.autograd, "backward", torch.compiler.disable(self.watched_backward))
        replace(self.hooks, torch.autograd, "grad", torch.compiler.disable(self.watched_grad))
        replace(self.hooks, torch, "compile", self.watched_compile)
        replace(self.hooks, Optimizer, "__init__", self.watched_init(Optimizer.__init__))
        for hook in (
            register_optimizer_step_pre_hook(torch.compiler.disable(self.before_step)),
            register_optimizer_step_post_hook(torch.compiler.disable(self.after_step)),
            registration.register_module_parameter_registration_hook(self.expect_parameters),
            registration.register_module_module_registration_hook(self.expect_parameters),
        ):
            self.hooks.callback(hook.remove)
        inner = (part for module in self.networks.modules() for part in module.modules())
        if OPERATIONS not in self.record.missing and not any(
            hasattr(part, "_orig_mod") or part._compiled_call_impl for part in inner
        ):
            self.details.start()

    def stop(self) -> Record:
        """Look at the gradients a last time, remove the hooks, and return the record."""
        self.details.stop()
        self.complete_record()
        self.remove_hooks()
        return self.record

    def remove_hooks(self) -> None:
        Watcher.watching, self.details.thread = None, -1  # that of no thread
        self.details.stop()
        self.hooks.close()
        for hook in [*self.details.node_hooks, *(account.hook for account in self.record.accounts.values())]:
            if hook:
                hook.remove()

    @guarded
    def complete_record(self) -> None:
        self.look_at_parameters()
        for event in (event for event in self.record.events if isinstance(event, Built)):
            event.gone = bool(event.graph) and not any(node() for node in event.graph)
        parameters = (account.parameter() for account in self.record.accounts.values())
        grown = {self.lineage.memory_of(p) for p in parameters if p is not None and p.grad_fn is not None}
        last_writes = {write.memory: write.place for write in self.lineage.writes}
        self.record.grown = [place for memory, place in last_writes.items() if memory in grown]

    def expect_parameters(self, *_: object) -> None:
        self.new_parameters = True

    @guarded
    def find_optimizers(self) -> list[Optimizer]:
        """Return the optimizers that stepped or hold a watched parameter; wrappers, whose `step` has no hooks, not."""
        self.open_accounts()
        kinds = {kind for kind in _subclasses(Optimizer) if getattr(getattr(kind, "step", None), "hooked", False)}
        loose = (leaf for p in self.record.passes for ref in p.loose if (leaf := ref()) is not None)
        concerned = {*self.record.accounts, *map(id, loose)}
        for thing in [thing for thing in gc.get_objects() if type(thing) in kinds]:
            if any(id(p) in concerned for p in parameters_of(thing)):
                self.record.optimizers.setdefault(self.number_of(thing), thing)
        return list(self.record.optimizers.values())

    def number_of(self, optimizer: Optimizer) -> int:
        if optimizer not in self.optimizer_numbers:  # made before the audit began
            self.optimizer_numbers[optimizer] = next(self.numbers)
        return self.optimizer_numbers[optimizer]

    def watched_init(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def init(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            self.note_construction(optimizer)

        return init

    @guarded
    def note_construction(self, optimizer: Optimizer) -> None:
        """Give an optimizer the number of an earlier one that was made at the same line for the same parameters."""
        self.record.made[optimizer] = place = construction_place(optimizer)
        self.open_accounts()
        alike = place, self.shared(self.record.numbers_of(parameters_of(optimizer)))
        number, passes = self.constructed.get(alike, (0, 0))
        if alike[1] and passes < len(self.record.passes):
            self.record.renewed[number] += 1
            self.record.optimizers[number] = optimizer
        else:
            number = next(self.numbers)
        self.constructed[alike] = number, len(self.record.passes)
        self.optimizer_numbers[optimizer] = number

    def shared(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the set of these numbers that other events have, too: a long training has few."""
        numbers = frozenset(numbers)
        return self.sets.setdefault(numbers, numbers)

    # Parameters and their gradients.

    def open_accounts(self) -> None:
        """Open an account for each new parameter: networks may get some during the audit."""
        if not self.new_parameters:
            return
        self.new_parameters = False
        for network in list(self.networks.modules()):
            for parameter in nn.Module.parameters(network):
                if is_lazy(parameter) or not isinstance(parameter, nn.Parameter):  # functional_call puts others there
                    self.new_parameters = True
                else:
                    self.open_account(parameter)

    def open_account(self, parameter: Tensor) -> None:
        key, accounts = id(parameter), self.record.accounts
        account = accounts.get(key)
        if account is None:
            reference = weakref.ref(parameter, lambda _: accounts.pop(key, None))
            account = accounts[key] = Account(next(self.numbers), reference)
        if account.hook is None and parameter.requires_grad and parameter.is_leaf:
            note = functools.partial(self.note_gradient, account.number)
            account.hook = parameter.register_post_accumulate_grad_hook(note)

    @guarded
    def note_gradient(self, number: int, parameter: Tensor) -> None:
        if parameter.requires_grad and self.details.call and not self.details.is_elsewhere():
            self.details.call.reached.add(number)

    @property
    def reads_gradients(self) -> bool:
        """Whether the values of gradients are read: at first, and in scripts that write to them."""
        return self.hides_writes or self.watched_in_detail <= DETAILED

    def look_at_parameters(self) -> None:
        """See which have been made or unfrozen, and whose gradient has been cleared, since the last look."""
        self.open_accounts()
        for account in list(self.record.accounts.values()):
            if (parameter := account.parameter()) is not None:
                if account.hook is None:
                    self.open_account(parameter)
                if account.passes:
                    self.detect_cleared_gradient(account, parameter)

    def detect_cleared_gradient(self, account: Account, parameter: Tensor, *, stepping: bool = False) -> None:
        """Forget the passes if the gradient has been cleared since the last look: it has become None or all zeros.

        One that was all zeros before and has been written to since was cleared if a backward pass comes next, and
        clipped or unscaled if a step comes next. Another tensor in its place may be computed from it.
        """
        grad = parameter.grad
        if grad is None:
            account.passes = set()
            return
        if account.grad is None or account.grad() is not grad:
            if self.details.active:
                calls = numbers_in(CALL, self.lineage.sources_of([grad]))
                numbers = {self.number_of_pass(self.record.calls[call], account) for call in calls}
                account.replaced = bool(numbers)
                account.passes = numbers
            elif not account.replaced:  # after the detailed passes, what these have shown holds
                account.passes = set()
            account.grad, account.version, account.zero = weakref.ref(grad), grad._version, is_zero(grad)
            return
        if grad._version != account.version:
            self.writes_gradients = True
            cleared = (not account.zero or not stepping) and is_zero(grad)
        else:
            cleared = self.reads_gradients and not account.zero and is_zero(grad)
            self.hides_writes |= cleared
        if cleared:
            account.passes = set()

    def number_of_pass(self, call: Pass, account: Account) -> int:
        """Return the number of a call of autograd among the passes; autograd.grad is one if its result is a `.grad`."""
        if call.number is None:
            call.number, call.reached = len(self.record.passes), set()
            self.record.passes.append(call)
            self.watched_in_detail += not self.closure_calls
        if call.kind == "grad":
            call.reached.add(account.number)
        return call.number

    def add_pass(self, account: Account, number: int, calls: dict[int, int]) -> None:
        """Record that pass `number` has added to the gradient. calls: what the passes are as sources."""
        parameter = account.parameter()
        grad = None if parameter is None else parameter.grad
        if grad is None:  # a hook of the user's has used and cleared it already
            account.passes = set()
            return
        account.passes.add(number)
        account.grad, account.version = weakref.ref(grad), grad._version
        account.zero = (self.reads_gradients or self.writes_gradients) and is_zero(grad)
        if self.details.active:
            self.lineage.memory_of(grad).sources = sum(calls.get(number, 0) for number in account.passes)

    # Backward passes.

    def watched_backward(self, *args, **kwargs):
        original = self.originals[0]
        # A pass inside a pass, as in a reentrant checkpoint, is part of the outer one.
        if self.details.is_elsewhere() or self.details.call:
            return original(*args, **kwargs)
        self.details.thread = threading.get_ident()
        if self.limit:
            self.limit(self, None)
        with self.details.paused():  # looking at gradients is no operation of the script
            event, roots = self.begin_pass(args[0] if args else kwargs.get("tensors")) or (None, ())
            try:
                return self.call_autograd(event, roots, original, args, kwargs)
            finally:
                self.end_pass(event)

    @guarded
    def begin_pass(self, losses: object) -> tuple[Pass, list]:
        """Return the new pass, and the roots of its graph."""
        losses = tensors_in(losses)
        roots = [tensor.grad_fn for tensor in losses if tensor.grad_fn is not None]
        self.look_at_parameters()
        self.details.steps = 0
        event = Pass("backward", current_place(), number=len(self.record.passes))
        if self.details.active:
            event.terms, event.detailed = self.lineage.terms_of(roots, current_frames()[0].f_code), True
            leaves = leaves_of(roots) + [tensor for tensor in losses if tensor.is_leaf]
            event.loose = [weakref.ref(leaf) for leaf in leaves if id(leaf) not in self.record.accounts]
            self.lineage.number_sources = 0
            event.outputs = self.details.outputs_in(roots)
            event.values = set(numbers_in(PARAMETER, self.lineage.sources_of(losses)))
            self.record.calls.append(event)
        self.record.events.append(event)
        self.record.passes.append(event)
        return event, roots

    @guarded
    def end_pass(self, event: Pass) -> None:
        reached = {key: account for key, account in self.record.accounts.items() if account.number in event.reached}
        calls = {call.number: bit(CALL, index) for index, call in enumerate(self.record.calls)}
        event.reached = self.shared(event.reached)
        for account in reached.values():
            self.add_pass(account, event.number, calls)
        for leaf in [leaf for reference in event.loose if (leaf := reference()) is not None]:
            if leaf.grad is not None:
                event.filled.add(id(leaf))
                self.lineage.memory_of(leaf.grad).sources = calls[event.number]
        self.networks.hold(reached.keys())
        self.watched_in_detail += self.closure_calls < 2
        self.stop_details()

    def stop_details(self) -> None:
        """End the details after enough passes, but not in a closure, whose step is still to be seen."""
        if self.watched_in_detail >= DETAILED and not self.closure_calls:
            self.details.stop()

    def watched_grad(self, outputs, inputs, *args, **kwargs):
        original = self.originals[1]
        outputs, inputs = (tuple(x) if isinstance(x, Iterator) else x for x in (outputs, inputs))  # read once
        create_graph = bool(kwargs.get("create_graph", len(args) > 2 and args[2]))
        event, roots = self.begin_grad(outputs, inputs, create_graph) or (None, ())
        if event is None:
            return original(outputs, inputs, *args, **kwargs)
        gradients = self.call_autograd(event, roots, original, (outputs, inputs, *args), kwargs)
        self.end_grad(event, inputs, gradients)
        return gradients

    @guarded
    def begin_grad(self, outputs: object, inputs: object, create_graph: bool) -> tuple[Pass, list] | None:
        """Return the call, and the roots of its graph; None if it is not to be watched."""
        tensors, ends = tensors_in(outputs), tensors_in(inputs)
        # Other kinds of tensors are those of a compiler that derives the graph, or of torch.func.
        plain = all(type(tensor) in (Tensor, nn.Parameter) for tensor in tensors + ends)
        if self.details.is_elsewhere() or self.details.call or not plain:
            return None
        self.open_accounts()
        event = Pass("grad", current_place(), create_graph=create_graph)
        roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        event.reached = self.record.numbers_of(leaves_between(roots, ends))
        self.record.events.append(event)
        return event, roots

    @guarded
    def end_grad(self, event: Pass, inputs: object, gradients: tuple) -> None:
        if self.details.active:
            self.details.follow_graph(event, gradients)
            inputs_from = self.lineage.sources_of(tensors_in(inputs))
            sources = of_kind(PARAMETER, inputs_from) | of_kind(FORWARD, inputs_from)
            sources |= sum(bit(PARAMETER, number) for number in event.reached)
            self.lineage.derive(gradients, sources | bit(CALL, len(self.record.calls)))
            self.record.calls.append(event)

    def call_autograd(self, event: Pass | None, roots: list, function: Callable, args: tuple, kwargs: dict) -> object:
        """Call autograd; if a tensor that it needs was changed in place, trace by whom."""
        self.details.call = event
        try:
            with self.details.paused():
                return function(*args, **kwargs)
        except BaseException as error:
            self.note_error(event, roots, str(error))
            raise
        finally:
            self.details.call = None

    @guarded
    def note_error(self, event: Pass, roots: list, message: str) -> None:
        event.raised = True
        if OVERWRITTEN not in self.record.missing and MESSAGE.search(message):
            with suppress(AttributeError):  # a node of a kind that keeps its tensors elsewhere
                blame = trace_overwritten(event, roots, message, self.lineage, self.raised_versions)
                self.record.overwritten.append(blame)

    def watched_compile(self, *args, **kwargs):
        """Call `torch.compile` without the details: hooks and modes would change what is compiled."""
        self.details.stop()
        return self.originals[2](*args, **kwargs)

    # Steps.

    @guarded
    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Record a step before it runs; one with a closure uses the gradients that each call of the closure leaves."""
        if self.details.is_elsewhere():
            return None
        if not self.details.call:  # else it may be a thread of autograd's
            self.details.thread = threading.get_ident()
        self.details.steps += 1
        self.resumes.append(self.details.pause())
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            self.record_step(optimizer)
            return None

        def watched_closure():
            steps, self.details.steps = self.details.steps, 0  # what the closure computes is no optimizer's arithmetic
            self.closure_calls += 1
            if self.resumes[-1]:
                self.details.resume()
            try:
                loss = closure()
            finally:
                self.details.pause()
                self.details.steps = steps
            self.record_step(optimizer)
            return loss

        if "closure" in kwargs:
            return args, {**kwargs, "closure": watched_closure}
        return (args[0], watched_closure, *args[2:]), kwargs

    @guarded
    def record_step(self, optimizer: Optimizer) -> None:
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None and found_inf.item():
            return  # GradScaler calls the step of a fused optimizer, which skips it itself
        self.open_accounts()
        number, bare, passes = self.number_of(optimizer), self.record.bare, self.record.passes
        self.record.optimizers[number] = optimizer
        event = Step("step", current_place(), optimizer=number, inner=self.details.steps > 1)
        taken = defaultdict(set)
        for parameter in parameters_of(optimizer):
            if (account := self.record.accounts.get(id(parameter))) is None:
                if type(parameter) is Tensor:
                    # A step of the user's own may write to what needs no gradient, also without a version.
                    value = 0.0 if parameter.requires_grad else parameter.detach().double().sum().item()
                    *_, before, never = bare.get(id(parameter), (value, True))
                    never = never and parameter.grad is None and value == before
                    bare[id(parameter)] = number, list(parameter.shape), value, never
                continue
            if account.passes or parameter.grad is not None:
                self.detect_cleared_gradient(account, parameter, stepping=True)
            account.stepped |= parameter.requires_grad
            account.version_before = -1
            if parameter.grad is None:
                continue
            account.version_before = parameter._version
            event.reached.add(account.number)
            # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
            sources = account.passes | ({len(passes) - 1} if self.details.call else set())
            if sources or not is_zero(parameter.grad):
                taken[frozenset(sources)].add(account.number)
        event.before, event.reached = len(passes), self.shared(event.reached)  # a gradient may have become a pass here
        event.taken = {passes: self.shared(numbers) for passes, numbers in taken.items()}
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
        for parameter in parameters_of(optimizer):
            account = self.record.accounts.get(id(parameter))
            if account is None or account.version_before < 0:
                continue
            if parameter._version == account.version_before:
                increment_version(parameter)
                self.raised_versions.add(account.number)
            account.steps.append((parameter._version, place))
            account.version_before = -1
        self.networks.hold({*map(id, parameters_of(optimizer))})
        if not self.details.steps:
            self.closure_calls = 0
            self.stop_details()
        if self.resumes and self.resumes.pop():
            self.details.resume()


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_subclasses, kind.__subclasses__()))


def _leave_forked_process() -> None:
    if Watcher.watching:
        Watcher.watching.remove_hooks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_forked_process)
