"""A gradient penalty through a compiled network."""

import torch
import torch._functorch.config

MESSAGES = ("torch.compile with aot_autograd does not currently support double backward",)
WHY = """torch.compile compiles a forward and a backward pass, but no derivative of the backward pass. Where the
compiled backward pass uses donated buffers, the message is that of donated-buffers, because create_graph=True
keeps the graph."""
CURE = """Use the plain network for the penalty, compiled._orig_mod, which has the same weights; the rest may use
the compiled one."""
RIGHT_RETURNS = [[2.744]]


def wrong():
    x = torch.ones(1, 1, requires_grad=True)
    weight = torch.full((1, 1), 0.7, requires_grad=True)

    @torch.compile(backend="aot_eager")
    def judge(x):
        return (x @ weight) ** 2

    with torch._functorch.config.patch(donated_buffer=False):
        (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
        (slope**2 / 2).backward()
    return weight.grad


def right():
    x = torch.ones(1, 1, requires_grad=True)
    weight = torch.full((1, 1), 0.7, requires_grad=True)

    def judge(x):
        return (x @ weight) ** 2

    (slope,) = torch.autograd.grad(judge(x), x, create_graph=True)
    (slope**2 / 2).backward()  # slope = 2 weight^2 x
    return weight.grad
