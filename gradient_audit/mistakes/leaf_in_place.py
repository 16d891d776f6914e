"""A weight is changed in place: a.add_(10), a += 10."""

import torch

MESSAGES = ("leaf Variable that requires grad", "moved into the graph interior")  # the second until PyTorch 1.7
WHY = """A leaf is a tensor that no operation made, such as a weight; gradients are kept in leaves. After a recorded
edit it would be the result of that edit, and no leaf."""
CURE = "Change weights under torch.no_grad(), as optimizers do, and before the forward pass that uses them."
RIGHT_RETURNS = 26.0


def wrong():
    a = torch.tensor(3.0, requires_grad=True)
    a.add_(10)
    (a * a).backward()
    return a.grad


def right():
    a = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        a.add_(10)
    (a * a).backward()
    return a.grad
