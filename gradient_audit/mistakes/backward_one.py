"""Old WGAN code: backward(one) and backward(mone)."""

import torch

MESSAGES = ("Mismatch in shape: grad_output[0]", "invalid gradient at index 0 - expected shape")
WHY = """The argument is the sign of the loss: one to minimize, mone = -one to maximize. Before PyTorch 0.4 the mean of
a score had shape (1,); now it has shape (), and torch.FloatTensor([1]) still has (1,)."""
CURE = "score.backward() to minimize, (-score).backward() to maximize."
RIGHT_RETURNS = [-1.0]


def wrong():
    weight = torch.tensor([0.0], requires_grad=True)
    mone = torch.FloatTensor([1]) * -1
    weight.mean().backward(mone)
    return weight.grad


def right():
    weight = torch.tensor([0.0], requires_grad=True)
    (-weight.mean()).backward()
    return weight.grad
