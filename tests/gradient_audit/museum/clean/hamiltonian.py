"""The loss is of the slopes of a network, on which its last bias has no influence."""
# expects: question unreached at "optimizer.step()"

import torch
from torch import nn

hamiltonian = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(hamiltonian.parameters(), lr=1e-3)

for _ in range(6):
    x = torch.randn(16, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(hamiltonian(x).sum(), x, create_graph=True)
    loss = (slope - x.detach()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
