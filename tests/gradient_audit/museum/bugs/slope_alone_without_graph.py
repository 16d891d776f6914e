"""The R1 penalty has a backward pass of its own, and its slope was computed without create_graph."""
# expects: error dead at "torch.autograd.grad("
# expects: mistake penalty-without-graph at "(5 * r1_loss).backward()"
# says: "torch.autograd.grad("
# cure: ".sum(), real)" -> ".sum(), real, create_graph=True)"

import torch
from torch import nn

discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
d_optim = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    real = torch.randn(5, 4, requires_grad=True)
    d_optim.zero_grad()
    nn.functional.softplus(-discriminator(real)).mean().backward()
    d_optim.step()
    (slope,) = torch.autograd.grad(discriminator(real).sum(), real)
    r1_loss = slope.square().sum(dim=1).mean()
    d_optim.zero_grad()
    (5 * r1_loss).backward()
    d_optim.step()
