"""A gradient penalty is computed without create_graph=True."""

import torch

MESSAGES = ("does not require grad and does not have a grad_fn",)
HINTS = ("penalty", "autograd.grad(outputs")
WHY = """torch.autograd.grad() gives gradients without a graph of their own, so the penalty is a constant. Added to D's
loss it changes the printed number and nothing else; PyTorch raises only where the penalty is the whole loss."""
CURE = "torch.autograd.grad(..., create_graph=True). Check: penalty.requires_grad is True."
WRONG_RETURNS = 6.0
RIGHT_RETURNS = 24.0


def wrong():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    score = weight**2 * x
    (slope,) = torch.autograd.grad(score, x, retain_graph=True)
    (score + slope**2 / 6).backward()
    return weight.grad


def right():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    score = weight**2 * x
    (slope,) = torch.autograd.grad(score, x, create_graph=True)
    (score + slope**2 / 6).backward()  # 2 weight + 4 weight^3 / 6
    return weight.grad
