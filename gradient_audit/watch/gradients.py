"""The gradients: how each `.grad` has changed since the last look, who used it, and who clipped or scaled it."""

import math
import weakref
from collections import defaultdict

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from gradient_audit import trace
from gradient_audit.watch.frames import current_place, place_at
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.lineage import Lineage
from gradient_audit.watch.memory import Memory
from gradient_audit.watch.optimizers import Optimizers
from gradient_audit.watch.parameters import Account
from gradient_audit.watch.sources import CALL, GRADIENT, Sources
from gradient_audit.watch.tensors import has_nan, is_zero, parameters_of, size_of, sum_of, tensors_in

CLIPPING = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")  # of torch.nn.utils


class Gradients:
    """Looks at gradients before passes and steps, and notes what the script does to them."""

    def __init__(self, optimizers: Optimizers, lineage: Lineage):
        self.optimizers, self.lineage = optimizers, lineage
        self.parameters, self.session = lineage.parameters, lineage.session
        self.guard, self.activity = self.session.guard, self.session.activity
        self.scaled: dict[int, float] = {}  # the scales of losses that GradScaler has multiplied, by sequence number
        self.divided: set[int] = set()  # passes whose gradients it has divided

    def look_at_all(self) -> None:
        """Look at the gradients that are the sum of known passes, in detail at all: others may be assigned."""
        self.parameters.open_all()
        if self.activity.detailed:
            self.note_hand_steps()
        for account, parameter in self.parameters.living():
            if not account.hooked:
                self.parameters.open(parameter)
            if self.activity.detailed or self.session.ledger.balances[account.number].passes:
                self.look(account, parameter)

    def note_hand_steps(self, written: set[Memory] | None = None) -> None:
        """Note which parameters have become what comes from gradients. written: of which memory; None: of any.

        From then on, they do not count as gradients.
        """
        pairs = [(account, self.lineage.memory_of(parameter)) for account, parameter in self.parameters.living()]
        pairs = [(account, memory) for account, memory in pairs if written is None or memory in written]
        for account, memory in pairs:
            if calls := [*map(self.session.history.calls.get, memory.sources.numbers(CALL))]:
                numbers = frozenset(call.number for call in calls if call.is_pass and account.number in call.reached)
                # `.data =` is no operation: the line that computed the value.
                place = current_place() if written or not memory.lines else place_at(memory.lines)
                strangers = self.strangers_behind(memory.sources, account.number)
                self.session.add(trace.HandStep(place, frozenset([account.number]), numbers, strangers=strangers))
        for _, memory in pairs:
            memory.sources = memory.sources.without(CALL).without(GRADIENT)

    def look(self, account: Account, parameter: Tensor, *, stepping: bool = False) -> None:
        """Compare a gradient with what it was at the last look."""
        grad, number, balances = parameter.grad, account.number, self.session.ledger.balances
        balance = balances[number]
        if grad is None:
            account.grad = None  # the same tensor may come back, as that of a replica
            if balance.passes:
                self.session.add(trace.GradientReplaced(number, zero=False))
        elif account.grad is None or account.grad() is not grad or (balance.borrowed and not balance.fresh):
            calls, borrowed, strangers = None, False, frozenset()
            if self.activity.detailed:
                calls, borrowed, strangers = self.calls_behind(grad, number)
            account.grad, account.version, zero = weakref.ref(grad), grad._version, is_zero(grad)
            if zero and balance.passes and not (balance.fresh or stepping):  # after a step, zeros clear what it used
                calls, borrowed, strangers = frozenset(), False, frozenset()
            before = len(self.session.history.passes)
            self.session.add(trace.GradientReplaced(number, zero, calls, borrowed, strangers))
            if not self.activity.closures:
                self.activity.spent += len(self.session.history.passes) - before  # calls of autograd.grad
        elif (written := grad._version != account.version) or self.activity.reads_values:
            cleared = self.session.ledger.is_cleared(number, is_zero(grad), written, stepping)
            if cleared and balance.passes:
                self.session.add(trace.GradientReplaced(number, zero=True))
            self.activity.writes |= cleared or written

    def calls_behind(self, grad: Tensor, number: int) -> tuple[frozenset[int], bool, frozenset[int]]:
        """Return the calls behind a gradient, whether one is a pass that did not reach its parameter, and strangers."""
        sources = self.lineage.sources_of(grad)
        calls = frozenset(sources.numbers(CALL))
        passes = (call for call in map(self.session.history.calls.get, calls) if call.kind == "backward")
        is_borrowed = any(number not in call.reached for call in passes)
        return calls, is_borrowed, self.strangers_behind(sources, number)

    def strangers_behind(self, sources: Sources, number: int) -> frozenset[int]:
        """Return whose gradient is behind a parameter's, if its calls have one for that, too, and it is not behind."""
        calls, of = map(self.session.history.calls.get, sources.numbers(CALL)), frozenset(sources.numbers(GRADIENT))
        has_own = any(number in call.reached | call.began.crossed for call in calls)
        return of if has_own and number not in of else frozenset()

    @guarded
    def note_clipping(self, parameters: Tensor | list[Tensor], limit: float, *_: object, **__: object) -> None:
        """Note a call of `clip_grad_norm_` or the like; with no limit, it asks for the norm."""
        if not math.isfinite(float(limit)):
            return
        given, self.activity.writes = tensors_in(parameters), True
        accounts = self.parameters.accounts_of(given)
        for account, parameter in accounts:
            self.look(account, parameter, stepping=True)  # the clip has written to it
        if accounts or not given:
            fate = "" if any(tensor.grad is not None for tensor in given) else "empty"
            fate = "used" if self.activity.steps else fate  # in a hook of the step
            self.session.add(trace.Clipped(current_place(), frozenset(account.number for account, _ in accounts), fate))

    @guarded
    def note_unscaling(self, scaler: torch.amp.GradScaler, optimizer: Optimizer) -> None:
        """Note a call of `GradScaler.unscale_`, by the script or by the scaler's step."""
        accounts = self.parameters.accounts_of(parameters_of(optimizer)) if scaler.is_enabled() else []
        passes = set().union(*(self.session.ledger.balances[account.number].passes for account, _ in accounts))
        scale = scaler.get_scale()  # for which the host waits
        for number in passes if scale != 1 else ():
            call = self.session.calls.get(number)
            scales = {self.scaled[node] for node in call.nodes & self.scaled.keys()} if call else ()
            if call and call.kind == "backward" and scale not in scales:
                self.session.add(trace.ScaleWrong(call.place, "another" if scales else "divided"))
        self.divided |= passes
        grads = {account.number: parameter.grad for account, parameter in accounts}
        read = grads if self.activity.detailed else {}
        infinite = {n for n, grad in read.items() if grad is not None and not grad.isfinite().all()}
        self.session.add(trace.Unscaled(frozenset(grads), frozenset(infinite)))

    @guarded
    def note_scaling(self, scaler: torch.amp.GradScaler, losses: object) -> None:
        if (scale := scaler.get_scale()) != 1:  # it is 1 where the scaler is not enabled
            nodes = [loss.grad_fn for loss in tensors_in(losses) if loss.grad_fn is not None]
            self.scaled |= {node._sequence_nr(): scale for node in nodes}

    @guarded
    def note_freezing(self, module: nn.Module, *_: object, **__: object) -> None:
        parameters = [*nn.Module.parameters(module)]
        on = any(parameter.requires_grad for parameter in parameters)
        self.session.add(trace.RequiresGradSet(current_place(), self.parameters.numbers_of(parameters), on))

    def note_step(self, optimizer: Optimizer) -> None:
        number = self.optimizers.number_of_step(optimizer)
        accounts = self.parameters.accounts_of(parameters_of(optimizer))
        if getattr(optimizer, "found_inf", False):  # GradScaler calls a fused optimizer's step, which skips it itself
            self.session.add(trace.Unscaled(frozenset(), frozenset(account.number for account, _ in accounts)))
            for account, _ in accounts:
                account.version_before = -1
            return
        for account, parameter in accounts:
            self.look(account, parameter, stepping=True)
            account.overwritten = False
        self.note_versions(optimizer)
        self._note_scaled_step(optimizer, self._add_step(number, {a.number: p for a, p in accounts}))

    @guarded
    def note_versions(self, optimizer: Optimizer) -> None:
        # One of the script's own may keep gradients before it clears them.
        may_clear = optimizer._optimizer_step_pre_hooks and type(optimizer).step.__module__.startswith("torch.")
        for account, parameter in self.parameters.accounts_of(parameters_of(optimizer)):
            account.version_before = -1 if parameter.grad is None else parameter._version
            account.sum_before = sum_of(parameter) if may_clear and self.activity.detailed else None

    @guarded
    def note_zero_grad(self, of: Optimizer | nn.Module, *_: object, **__: object) -> None:
        """Note a call of `zero_grad()`, and of what the step that runs was to use, if it has written nothing yet."""
        if self.activity.is_watched():
            parameters = nn.Module.parameters(of) if isinstance(of, nn.Module) else parameters_of(of)
            accounts = self.parameters.accounts_of(parameters)
            due = [(a, p) for a, p in accounts if self.activity.steps and a.version_before >= 0]
            lost = frozenset(a.number for a, p in due if a.sum_before is not None and a.sum_before == sum_of(p))
            self.session.add(trace.ZeroGrad(current_place(), frozenset(a.number for a, _ in accounts), lost))

    def leave_step(self) -> None:
        """Note that a pass begins, maybe inside of a step, or after one that raised."""
        if self.activity.steps:
            self.note_climb()
        self.activity.steps = 0

    @guarded
    def note_climb(self) -> None:
        """Note what a step has written before a pass runs inside of it: it has used the gradients by hand, as SAM."""
        climbs: dict[frozenset[int], set[int]] = defaultdict(set)
        for account, parameter in self.parameters.living():
            if account.version_before not in (-1, parameter._version):
                account.version_before = parameter._version
                climbs[frozenset(self.session.ledger.balances[account.number].passes)].add(account.number)
        for passes, numbers in climbs.items():
            self.session.add(trace.HandStep(current_place(), frozenset(numbers), passes, alone=True))

    def _add_step(self, number: int, parameters: dict[int, Tensor]) -> dict[frozenset, set[int]]:
        """Add the event; return the parameters by the passes whose sum the step uses."""
        shared, balances = self.session.shared, self.session.ledger.balances
        grads = {key: parameter.grad for key, parameter in parameters.items() if parameter.grad is not None}
        in_detail = self.activity.detailed
        sizes = {key: size_of(grad) for key, grad in grads.items() if in_detail}
        zeros = {key for key, grad in grads.items() if (in_detail or not balances[key].passes) and is_zero(grad)}
        empty = {key for key in zeros if not balances[key].passes}
        trained = {key for key, p in parameters.items() if p.requires_grad or key in grads.keys() - empty}
        nan = {key for key, grad in grads.items() if in_detail and has_nan(grad)}
        return self.session.add(
            trace.Step(
                place=current_place(),
                optimizer=number,
                parameters=shared(frozenset(parameters)),
                trained=shared(frozenset(trained)),
                with_gradient=shared(frozenset(grads)),
                # What no pass has filled counts as a gradient unless it is all zeros.
                empty=shared(frozenset(empty)),
                # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
                inside=self.activity.call.number if self.activity.call else None,
                inner=self.activity.steps > 1,
                nan=shared(frozenset(nan)),
                zeros=frozenset(zeros) if in_detail else None,
                sizes={key: size for key, size in sizes.items() if size is not None},
            )
        )

    def _note_scaled_step(self, optimizer: Optimizer, sums: dict[frozenset, set[int]]) -> None:
        numbers = {number for passes in sums for number in passes - self.divided}
        for call in filter(None, map(self.session.calls.get, numbers)):
            divides = hasattr(optimizer, "grad_scale")  # a fused step does, itself
            is_read = "read" in self.session.history.calls[call.number].read
            if call.nodes & self.scaled.keys() and not (is_read or divides):
                self.session.add(trace.ScaleWrong(current_place(), "multiplied"))
