"""optimizer.zero_grad() is missing."""

import torch

WHY = "backward() adds to .grad. Without zero_grad() each step uses the sum of all gradients so far: 2, 4, 6."
CURE = "optimizer.zero_grad() before every backward() that starts a step."
WRONG_RETURNS = (6.0, -0.2)
RIGHT_RETURNS = (2.0, 0.4)


def wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        (2 * weight).backward()
        optimizer.step()
    return weight.grad, weight


def right():
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (2 * weight).backward()
        optimizer.step()
    return weight.grad, weight
