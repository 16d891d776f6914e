"""What is done to gradients between the backward pass and the step."""

import math

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from gradient_audit.graph import parameters_of, tensors_in
from gradient_audit.guard import guarded
from gradient_audit.places import current_place


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
    accounts = watcher.record.accounts_of(parameters_of(optimizer)) if scaler.is_enabled() else []
    grads = {account.number: parameter.grad for account, parameter in accounts}
    read = grads.items() if watcher.activity.detailed else ()
    watcher.record.ledger.unscale(grads.keys())
    watcher.record.ledger.skip({number for number, grad in read if grad is not None and not grad.isfinite().all()})
