"""An optimizer gets a result in place of a leaf."""

import torch

MESSAGES = ("can't optimize a non-leaf Tensor", "you can only change requires_grad flags of leaf variables")
WHY = """Only a leaf keeps its gradient. Here the product is a result, and no variable holds the leaf that it was
made from; .to(device), .cuda() or .float() after requires_grad=True do the same."""
CURE = """Set requires_grad last: (torch.ones(2) * 0.01).to(device).requires_grad_(), or use nn.Parameter. A result is
cut off its graph by detach(), not by requires_grad = False."""
RIGHT_RETURNS = [0.0, -0.01]


def wrong():
    z = torch.tensor([1.0, 0.0], requires_grad=True) * 0.01
    return torch.optim.SGD([z], lr=0.01)


def right():
    z = (torch.tensor([1.0, 0.0]) * 0.01).requires_grad_()
    optimizer = torch.optim.SGD([z], lr=0.01)
    z.sum().backward()
    optimizer.step()
    return z
