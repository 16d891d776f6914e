"""A penalty without create_graph=True, beside D's loss."""

import torch

MESSAGES = ("does not require grad and does not have a grad_fn",)  # where the penalty is the whole loss
HINTS = ("autograd.grad", "penalty.backward", "gp.backward")
WHY = """Without it the slope is a constant, and the penalty has no gradient. D's own loss has a graph, so there
is no error, and the printed loss includes a penalty that has no effect."""
CURE = "torch.autograd.grad(..., create_graph=True). Check: penalty.requires_grad is True."
WRONG_RETURNS = 6.0
RIGHT_RETURNS = 24.0


def wrong():
    x = torch.tensor(1.0, requires_grad=True)
    weight = torch.tensor(3.0, requires_grad=True)
    score = weight**2 * x
    (slope,) = torch.autograd.grad(score, x, retain_graph=True)
    (score + slope**2 / 6).backward()
    return weight.grad


def right():
    x = torch.tensor(1.0, requires_grad=True)
    weight = torch.tensor(3.0, requires_grad=True)
    score = weight**2 * x
    (slope,) = torch.autograd.grad(score, x, create_graph=True)
    (score + slope**2 / 6).backward()  # 2 weight + 4 weight^3 / 6
    return weight.grad
