"""An in-place activation right after sigmoid or tanh."""

import torch
from torch import nn

MESSAGES = ("variables needed for gradient computation", "modified by an inplace operation")
HINTS = ("expected version 0 instead", "inplace=True", "output 0 of Sigmoid", "output 0 of Tanh", "output 0 of Softmax")
HINTS += ("output 0 of LeakyRelu",)  # the one in place, which saves its output, too
WHY = """Sigmoid computes its gradient from its output, s (1 - s), and so saves the output. The activation after it
writes into that tensor. The message names the layer whose output was lost."""
CURE = "inplace=False there. After Linear, Conv2d or BatchNorm, which do not need their output, in place is safe."
RIGHT_RETURNS = [0.25, 0.19661]


def wrong():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2, inplace=True))(x).sum().backward()
    return x.grad


def right():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2))(x).sum().backward()
    return x.grad
