"""One of several views is changed in place: chunk, split, unbind."""

import torch

MESSAGES = ("is a view and is being modified inplace",)
WHY = """chunk(), split() and unbind() return several views of one tensor in one node of the graph, and autograd cannot
rewrite the history of one of them."""
CURE = "A result of its own, a = a + 1, or a.clone() before the edit. One slice, x[:, :2], may be changed."
RIGHT_RETURNS = [2.0, 2.0]


def wrong():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = (x * 1).chunk(2)
    a += 1
    (a * b).sum().backward()
    return x.grad


def right():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = (x * 1).chunk(2)
    a = a + 1
    (a * b).sum().backward()
    return x.grad
