"""A differential equation whose field is a slope of the network: the adjoint solves it without keeping its graphs."""
# expects: nothing

import torch
from torch import nn

hamiltonian = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(hamiltonian.parameters())


def field(x):
    with torch.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(hamiltonian(x).sum(), x, create_graph=True)
    return torch.cat([slope[:, 1:], -slope[:, :1]], dim=1)


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *weights):
        with torch.no_grad():
            for _ in range(3):
                x = x + 0.1 * field(x).detach()
        ctx.save_for_backward(x)
        ctx.weights = weights
        return x

    @staticmethod
    def backward(ctx, adjoint):
        (x,) = ctx.saved_tensors
        gradients = [torch.zeros_like(weight) for weight in ctx.weights]
        for _ in range(3):
            with torch.enable_grad():
                point = x.detach().requires_grad_()
                slope = field(point)
                moved, *parts = torch.autograd.grad(slope, [point, *ctx.weights], adjoint, allow_unused=True)
            x = x - 0.1 * slope.detach()
            adjoint = adjoint + 0.1 * moved
            gradients = [g if part is None else g + 0.1 * part for g, part in zip(gradients, parts, strict=True)]
        return adjoint, *gradients


for _ in range(6):
    x = torch.randn(8, 2)
    optimizer.zero_grad()
    (Adjoint.apply(x, *hamiltonian.parameters()) - x.roll(1, 0)).square().mean().backward()
    optimizer.step()
