"""Langevin steps call backward(), which also fills the gradients of the energy, and its own step adds them."""
# expects: question reused at "    loss.backward()"
# cure: "    loss = " -> "    optimizer.zero_grad()\n    loss = "

import torch
from torch import nn

energy = nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(energy.parameters())

for _ in range(5):
    optimizer.zero_grad()
    x = torch.randn(6, 4, requires_grad=True)
    for _ in range(3):
        energy(x).sum().backward()
        with torch.no_grad():
            x -= 0.1 * x.grad + 0.01 * torch.randn_like(x)
        x.grad = None
    loss = energy(torch.randn(6, 4)).mean() - energy(x.detach()).mean()
    loss.backward()
    optimizer.step()
