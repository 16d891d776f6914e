"""Fused Adam that updates the version counters of the weights, and a fall of the learning rate at the end."""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.autograd.graph import increment_version


def fused_adam(parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float]) -> torch.optim.Adam:
    """Return fused Adam whose steps increment the `_version` of the weights, as the other forms of Adam do.

    Autograd raises "modified by an inplace operation" for a weight whose version has changed since the forward pass.
    Fused Adam does not increment it (torch 2.6.0 to 2.15.0): the same mistake would give a wrong gradient, silently. So
    does a copy by `deepcopy()` or pickle, which has no hooks: call this again, and `load_state_dict()`.
    """
    optimizer = torch.optim.Adam(parameters, lr=lr, betas=betas, fused=True)

    def increment_versions(*_: object) -> None:
        increment_version([p for group in optimizer.param_groups for p in group["params"] if p.grad is not None])

    def fit_state(*_: object) -> None:  # the fused form takes shapes and memory layouts for granted
        for parameter, entry in optimizer.state.items():
            for name in {"step", "exp_avg", "exp_avg_sq", *entry}:
                own = entry[name].new_empty(()) if name == "step" else torch.empty_like(parameter)
                entry[name] = own.copy_(entry[name].reshape(own.shape))

    optimizer.register_step_post_hook(increment_versions)
    optimizer.register_load_state_dict_post_hook(fit_state)
    return optimizer


def linear_decay(steps: int, start: int) -> Callable[[int], float]:
    """Return the learning rate's factor after so many steps: 1 up to `start`, then linearly down to 0 at `steps`."""
    return lambda done: min(1.0, max(0, steps - done) / max(1, steps - start))
