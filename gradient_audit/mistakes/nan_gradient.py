"""A gradient is NaN: the root of zero, or std() of one sample."""

import torch

MESSAGES = ("returned nan values in its", "degrees of freedom is <= 0")
WHY = """The derivative of a root at 0 is infinite, and times 0 it is NaN; the norm of a gradient penalty is such a
root. Under torch.autograd.set_detect_anomaly(True) backward() names the operation; without, all weights become NaN.
std() and var() of one sample, as of a last batch of one, divide by N - 1 = 0: NaN, and only a warning."""
CURE = """torch.linalg.vector_norm(), whose gradient at 0 is 0, or add 1e-12 under the root. For std():
drop_last=True in the DataLoader, or correction=0."""
RIGHT_RETURNS = [0.0, 0.0]


def wrong():
    slope = torch.zeros(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        slope.square().sum().sqrt().backward()
    return slope.grad


def right():
    slope = torch.zeros(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        torch.linalg.vector_norm(slope).backward()
    return slope.grad
