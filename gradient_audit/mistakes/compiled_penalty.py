"""A gradient penalty through a compiled network."""

import torch

MESSAGES = ("torch.compile with aot_autograd does not currently support double backward",)
WHY = """torch.compile compiles a forward and a backward pass, but no derivative of the backward pass. Where the
compiled backward pass uses donated buffers, the message is that of donated-buffers."""
CURE = "The plain network for the penalty, compiled._orig_mod, which has the same weights; the compiled one elsewhere."
RIGHT_RETURNS = 1.4


def wrong():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(0.7, requires_grad=True)

    @torch.compile(backend="aot_eager")
    def judge(x):
        return weight * x

    (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
    (slope**2).backward()
    return weight.grad


def right():
    x, weight = torch.tensor(1.0, requires_grad=True), torch.tensor(0.7, requires_grad=True)

    def judge(x):
        return weight * x

    (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
    (slope**2).backward()  # slope = weight
    return weight.grad
