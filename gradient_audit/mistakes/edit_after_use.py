"""A tensor is edited in place after a loss has used it."""

import torch

MESSAGES = ("variables needed for gradient computation", "modified by an inplace operation")
HINTS = ("expected version 0 instead", "CopySlices")
WHY = """The gradient of b * b needs the value of b. Every tensor counts its in-place edits in _version: 0 when b * b
saved it, 1 after the assignment, and the message says so."""
CURE = "Edit a clone(), or edit after backward()."
RIGHT_RETURNS = [3.0, 5.0]


def wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).mean()
    b[0] = 1000.0  # the gradient of b * b needs b as it was
    loss.backward()
    return a.grad


def right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).mean()
    edited = b.clone()
    edited[0] = 1000.0
    loss.backward()
    return a.grad
