"""What is done to gradients between the backward pass and the step, the step itself, and freezing."""

import math

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from gradient_audit.graph import has_nan, is_zero, parameters_of, tensors_in
from gradient_audit.guard import guarded
from gradient_audit.places import current_place
from gradient_audit.record import Step


@guarded
def note_clipping(watcher, parameters: Tensor | list[Tensor], *limits: object, **named: object) -> None:
    """Note a call of clip_grad_norm_ or clip_grad_value_."""
    if not math.isfinite(float([*limits, *named.values()][0])):
        return  # asked for the norm
    accounts = watcher.record.accounts_of(tensors_in(parameters))
    for account, parameter in accounts:
        watcher.accounts.look(account, parameter)
    if numbers := {account.number for account, _ in accounts}:
        fate = "used" if watcher.activity.steps else ""  # in a hook of the step
        watcher.record.ledger.clip(current_place(), numbers, fate)


@guarded
def note_unscaling(watcher, scaler: torch.amp.GradScaler, optimizer: Optimizer) -> None:
    """Note a call of `GradScaler.unscale_`, by the script or by the scaler's step."""
    record = watcher.record
    accounts = record.accounts_of(parameters_of(optimizer)) if scaler.is_enabled() else []
    passes = set().union(*(record.ledger.balances[account.number].passes for account, _ in accounts))
    for p in (record.passes[number] for number in passes if scaler.get_scale() != 1):
        if p.detailed and p.kind == "backward" and not p.nodes & watcher.scaled:
            record.unscaled.append(p.place)
    grads = {account.number: parameter.grad for account, parameter in accounts}
    read = grads.items() if watcher.activity.detailed else ()
    record.ledger.unscale(grads.keys())
    record.ledger.skip({number for number, grad in read if grad is not None and not grad.isfinite().all()})


@guarded
def note_scaling(watcher, _scaler: torch.amp.GradScaler, losses: object) -> None:
    """Note a call of `GradScaler.scale`."""
    watcher.scaled |= {loss.grad_fn._sequence_nr() for loss in tensors_in(losses) if loss.grad_fn is not None}


@guarded
def note_freezing(watcher, module: nn.Module, *_: object, **__: object) -> None:
    """Note a call of `Module.requires_grad_`."""
    watcher.accounts.open_all()
    parameters = [*nn.Module.parameters(module)]
    place = None if any(parameter.requires_grad for parameter in parameters) else current_place()
    watcher.record.frozen |= dict.fromkeys(watcher.record.numbers_of(parameters), place)


@guarded
def record_step(watcher, optimizer: Optimizer) -> None:
    """Record a step before it runs."""
    watcher.accounts.open_all()
    watcher.accounts.follow()
    accounts = watcher.record.accounts_of(parameters_of(optimizer))
    ledger, number, place = watcher.record.ledger, watcher.accounts.number_of(optimizer), current_place()
    if getattr(optimizer, "found_inf", False):  # GradScaler calls a fused optimizer's step, which skips it itself
        ledger.skip({account.number for account, _ in accounts})
        for account, _ in accounts:
            account.version_before = -1
        return
    watcher.record.optimizers[number] = optimizer
    watcher.watch_again(place)
    watcher.accounts.slots[number] = [watcher.record.accounts.get(id(p)) for p in parameters_of(optimizer)]
    zeros, trained, nan = {}, set(), set()
    for account, parameter in accounts:
        watcher.accounts.look(account, parameter, stepping=True)
        trained |= {account.number} if parameter.requires_grad else set()
        account.version_before = -1 if parameter.grad is None else parameter._version
        if parameter.grad is not None:  # what no pass has filled is read, and counts as a gradient unless all zeros
            zeros[account.number] = not ledger.balances[account.number].passes and is_zero(parameter.grad)
            nan |= {account.number} if watcher.activity.detailed and has_nan(parameter.grad) else set()
    held = {account.number for account, _ in accounts}
    watcher.record.held |= held
    # A step inside a pass (a hook of the user's on the parameter) uses the gradient of that pass.
    inside = len(watcher.record.passes) - 1 if watcher.activity.call else None
    taken = ledger.step(held, trained, zeros, inside)
    event = Step("step", place, watcher.shared(frozenset(zeros)), optimizer=number, nan=nan)
    event.inner = watcher.activity.steps > 1
    if watcher.activity.detailed:
        event.still = {account.number for account, p in accounts if p.grad is not None and is_zero(p.grad)}
    event.taken = {passes: watcher.shared(frozenset(numbers)) for passes, numbers in taken.items()}
    watcher.record.events.append(event)
