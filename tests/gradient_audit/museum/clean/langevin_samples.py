"""An energy-based model: samples walk along the slope of the energy, read from x.grad, with the network frozen."""
# expects: nothing

import torch
from torch import nn

energy = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)

for _ in range(6):
    energy.requires_grad_(False)
    x = torch.rand(16, 2, requires_grad=True)
    for _ in range(8):
        x.data.add_(torch.randn_like(x), alpha=0.005)
        energy(x).sum().backward()
        x.grad.clamp_(-0.03, 0.03)
        x.data.add_(x.grad, alpha=-10)
        x.grad.zero_()
    energy.requires_grad_(True)
    real, fake = energy(torch.randn(16, 2)), energy(x.detach())
    loss = real.mean() - fake.mean() + 0.1 * (real.square() + fake.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
