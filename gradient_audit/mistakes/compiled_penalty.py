"""A gradient penalty through a compiled network."""

import torch

MESSAGES = ("torch.compile with aot_autograd does not currently support double backward",)
WHY = """torch.compile compiles a forward and a backward pass, but no derivative of the backward pass. Where the
compiled backward pass uses donated buffers, the message is that of donated-buffers."""
CURE = "The plain network for the penalty, compiled._orig_mod, which has the same weights; the compiled one elsewhere."
RIGHT_RETURNS = 1.4


def wrong():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(0.7, requires_grad=True)
    judge = torch.compile(lambda x: weight * x, backend="aot_eager")
    (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
    (slope**2).backward()
    return weight.grad


def right():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(0.7, requires_grad=True)
    (slope,) = torch.autograd.grad(weight * x, x, create_graph=True)  # judged by the plain network
    (slope**2).backward()  # slope = weight
    return weight.grad
