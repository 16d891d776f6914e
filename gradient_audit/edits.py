"""What is done to gradients between the backward pass and the step, and to the parameters of an optimizer."""

import math

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from gradient_audit.graph import parameters_of, tensors_in
from gradient_audit.guard import guarded, replace
from gradient_audit.places import current_place


@guarded
def note_clipping(watcher, parameters: Tensor | list[Tensor], *limits: object, **named: object) -> None:
    """Note a call of clip_grad_norm_ or clip_grad_value_."""
    if not math.isfinite(float([*limits, *named.values()][0])):
        return  # asked for the norm
    place, record = current_place(), watcher.record
    for account, parameter in record.accounts_of(tensors_in(parameters)):
        record.clips.setdefault(place, "used" if watcher.details.steps else "")  # in a hook of the step
        watcher.detect_cleared_gradient(account, parameter)
        account.clip, account.clipped = place, frozenset(account.passes)


@guarded
def note_unscaling(watcher, scaler: torch.amp.GradScaler, optimizer: Optimizer) -> None:
    """Note a call of `GradScaler.unscale_`, by the script or by the scaler's step."""
    record = watcher.record
    for account, parameter in record.accounts_of(parameters_of(optimizer)) if scaler.is_enabled() else ():
        if account.clipped & account.passes:
            record.clips[account.clip] = "scaled"
        if watcher.details.active and parameter.grad is not None and not parameter.grad.isfinite().all():
            record.skipped |= account.passes  # whose step the scaler will skip


def watch_parameters(watcher) -> None:
    """Have the line noted that makes a parameter."""
    original = nn.Parameter.__new__
    note = guarded(lambda of, parameter: of.record.made.setdefault(parameter, current_place()))

    def made(*args, **kwargs):
        parameter = original(*args, **kwargs)
        note(watcher, parameter)
        return parameter

    replace(watcher.hooks, nn.Parameter, "__new__", made)


def follow_parameters(watcher) -> None:
    """Let a parameter that takes another's place in an optimizer have that one's account."""
    record = watcher.record
    for number, optimizer in record.optimizers.items():
        held = [parameter for parameter in parameters_of(optimizer) if isinstance(parameter, Tensor)]
        for account, new in zip(watcher.slots.get(number, ()), held, strict=False):
            old, known = account and account.parameter(), record.accounts.get(id(new))
            if old is None or old is new or (known and (known.stepped or known.passes)) or not new.requires_grad:
                continue
            for gone in (old, new):
                if (entry := record.accounts.pop(id(gone), None)) and entry.hook:
                    entry.hook()  # removes it
            watcher.open_account(old)
            record.displaced[record.accounts[id(old)].number] = record.made.get(new)
            watcher.open_account(new, account.number)
            record.accounts[id(new)].stepped = account.stepped
            watcher.networks.follow(old, new)
        if number in watcher.slots:
            watcher.slots[number] = [record.accounts.get(id(parameter)) for parameter in held]
