"""Old WGAN code: backward(one) and backward(mone)."""

import torch

MESSAGES = ("Mismatch in shape: grad_output[0]", "invalid gradient at index 0 - expected shape")
HINTS = (
    "backward(one",
    "backward(mone",
    "backward(-one",
    "backward(neg_one",
    "grad_output[0] has a shape of torch.Size([1])",
)
WHY = """The argument is the sign of the loss: one to minimize, mone = -one to maximize. Before PyTorch 0.4 the
mean of a score had shape (1,); now it has shape (), and torch.FloatTensor([1]) still has (1,)."""
CURE = "score.backward() to minimize, (-score).backward() to maximize. torch.tensor(1.0) as the argument works as well."
RIGHT_RETURNS = [-1.0]


def wrong():
    weight = torch.tensor([0.0], requires_grad=True)
    one = torch.FloatTensor([1])
    mone = one * -1
    score = weight.mean()
    score.backward(mone)
    return weight.grad


def right():
    weight = torch.tensor([0.0], requires_grad=True)
    score = weight.mean()
    (-score).backward()
    return weight.grad
