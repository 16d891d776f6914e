"""Adam in its fused form, with the version counters that this form leaves out."""

from collections.abc import Iterable

import torch
from torch import nn
from torch.autograd.graph import increment_version


def fused_adam(parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float]) -> torch.optim.Adam:
    """Return fused Adam whose steps raise the `_version` of the weights, as the other forms of Adam do.

    Autograd compares versions: a backward pass that needs a weight which a step has changed since is the error
    "modified by an inplace operation". Fused Adam, AdamW, SGD and Adagrad change weights and leave `_version` alone
    (seen on the CPU with torch 2.6.0 and 2.15.0), and the same mistake gives a wrong gradient without an error. The
    hook below is all that it takes for any of them; copy it with the optimizer, or take the default form of Adam.
    """
    optimizer = torch.optim.Adam(parameters, lr=lr, betas=betas, fused=True)
    optimizer.register_step_post_hook(raise_versions)
    return optimizer


def raise_versions(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Raise the version of every weight that `optimizer` has stepped; a step post-hook."""
    weights = (weight for group in optimizer.param_groups for weight in group["params"])
    increment_version([weight for weight in weights if weight.grad is not None])
