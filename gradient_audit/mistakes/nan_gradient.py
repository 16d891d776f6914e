"""A gradient is NaN: the root of zero."""

import torch

MESSAGES = ("returned nan values in its",)
HINTS = ("SqrtBackward", "PowBackward", "NormBackward")
WHY = """The derivative of a root at 0 is infinite, and times 0 it is NaN. The norm of a gradient penalty is such
a root. Under torch.autograd.set_detect_anomaly(True) backward() names the operation; without, all weights become
NaN."""
CURE = """torch.linalg.vector_norm(), whose gradient at 0 is 0, or (square sum + 1e-12).sqrt(). For log, see
logits-to-bce."""
RIGHT_RETURNS = ([0.0, 0.0], [0.0, 0.0])


def wrong():
    slope = torch.tensor([0.0, 0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        norm = slope.square().sum().sqrt()
        norm.backward()
    return slope.grad


def right():
    slope = torch.tensor([0.0, 0.0], requires_grad=True)
    torch.linalg.vector_norm(slope).backward()
    norm = slope.grad
    slope.grad = None
    (slope.square().sum() + 1e-12).sqrt().backward()
    return norm, slope.grad
