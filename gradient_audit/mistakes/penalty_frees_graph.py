"""A gradient penalty frees the graph that D's loss needs."""

import torch

MESSAGES = ("backward through the graph a second time",)
HINTS = ("create_graph=True", "penalty")
WHY = "create_graph=True keeps the graph. retain_graph=False beside it frees it at once: no backward() can use it."
CURE = "torch.autograd.grad(..., create_graph=True), and no retain_graph."
RIGHT_RETURNS = 57.0


def wrong():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    d = (weight * x) ** 3
    (slope,) = torch.autograd.grad(d, x, create_graph=True, retain_graph=False)
    (d + slope**2).backward()
    return weight.grad


def right():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    d = (weight * x) ** 3
    (slope,) = torch.autograd.grad(d, x, create_graph=True)
    (d + slope**2).backward()  # slope = 3 weight^3 x^2
    return weight.grad
