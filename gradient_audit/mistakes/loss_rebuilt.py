"""A loss is rebuilt from numbers: loss.item(), torch.tensor(...)."""

import torch

MESSAGES = ("does not require grad and does not have a grad_fn", "'float' object has no attribute 'backward'")
HINTS = ("loss.item()", "torch.tensor(loss", "from_numpy")
WHY = """.item(), float(), .numpy(), .tolist(), and torch.tensor() of a tensor copy values, without the graph behind
them. The new tensor is a leaf that depends on nothing; a number has no backward() at all."""
CURE = "Join losses with + or torch.stack(losses).mean(), and use the numbers only for logging."
RIGHT_RETURNS = 1.0


def wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    losses = [weight**2, -weight]
    torch.tensor([loss.item() for loss in losses]).sum().backward()
    return weight.grad


def right():
    weight = torch.tensor(1.0, requires_grad=True)
    losses = [weight**2, -weight]
    torch.stack(losses).sum().backward()
    return weight.grad
