"""Gradients of `autograd.grad()` are added to those in `.grad`, which nothing clears."""
# expects: error stale at "for p, gradient in"
# cure: "    optimizer.step()" -> "    optimizer.step()\n    optimizer.zero_grad()"

import torch
from torch import nn

network = nn.Linear(4, 4)
optimizer = torch.optim.SGD(network.parameters(), 0.1)

for _ in range(6):
    x = torch.randn(8, 4)
    loss = (network(x) - x).square().mean()
    for p, gradient in zip(network.parameters(), torch.autograd.grad(loss, [*network.parameters()]), strict=True):
        p.grad = gradient if p.grad is None else p.grad + gradient
    optimizer.step()
