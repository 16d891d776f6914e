"""An edit through .data between forward and backward."""

import torch

WHY = ".data shares the memory of b but not its _version, which stays at 0: autograd computes 2 b with the zeros."
CURE = """No .data. detach() shares the memory as well, but there the edit is caught: see edit-after-use. To edit
freely, detach().clone(); to change a weight, torch.no_grad()."""
WRONG_RETURNS = 0.0
RIGHT_RETURNS = 10.0


def wrong():
    a = torch.tensor(3.0, requires_grad=True)
    b = a + 2
    loss = b * b
    b.data.zero_()
    loss.backward()
    return a.grad


def right():
    a = torch.tensor(3.0, requires_grad=True)
    b = a + 2
    loss = b * b
    b.detach().clone().zero_()
    loss.backward()
    return a.grad
