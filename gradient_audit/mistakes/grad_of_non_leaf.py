""".grad of a result is None: only leaves keep theirs."""

import torch

MESSAGES = ("attribute of a Tensor that is not a leaf Tensor is being accessed",)
WHY = "To save memory backward() drops the gradients of results; only leaves that require grad keep theirs."
CURE = "retain_grad() on the tensor before backward(). is_leaf tells which kind a tensor is."
UNSEEN = "PyTorch's warning; is_leaf of the tensor."
WRONG_RETURNS = (24.0, None)
RIGHT_RETURNS = (24.0, 12.0)


def wrong():
    weight = torch.tensor(3.0, requires_grad=True)
    score = 2 * weight
    (score**2).backward()
    return weight.grad, score.grad


def right():
    weight = torch.tensor(3.0, requires_grad=True)
    score = 2 * weight
    score.retain_grad()
    (score**2).backward()
    return weight.grad, score.grad
