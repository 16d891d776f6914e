"""backward() on a number: .item() came too early."""

import torch

MESSAGES = ("'float' object has no attribute 'backward'",)
WHY = ".item() and float() give a Python number, which has no graph."
CURE = "backward() first, .item() only to print."
RIGHT_RETURNS = 2.0


def wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    loss = (weight**2).item()
    loss.backward()
    return weight.grad


def right():
    weight = torch.tensor(1.0, requires_grad=True)
    loss = weight**2
    loss.backward()
    return weight.grad
