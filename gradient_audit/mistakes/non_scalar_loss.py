"""backward() on a loss of several numbers."""

import torch

MESSAGES = ("grad can be implicitly created only for scalar outputs",)
WHY = "backward() computes the gradient of one number. For several numbers it would need a weight for each."
CURE = "mean() or sum() first, and no reduction='none' in the loss."
RIGHT_RETURNS = [-1.0, 2.0]


def wrong():
    score = torch.tensor([0.0, 3.0], requires_grad=True)
    ((score - 1) ** 2).backward()
    return score.grad


def right():
    score = torch.tensor([0.0, 3.0], requires_grad=True)
    ((score - 1) ** 2).mean().backward()
    return score.grad
