"""An energy with a Gaussian reference, |x|^2/2 - f(x), and negatives of Langevin dynamics (Xie et al., 2016).

The first half moves no weight, as the negatives are constants of the loss on purpose.
"""
# expects: question dead at "energy(fake.detach()).mean()"
# networks: potential

import torch
from torch import nn

torch.manual_seed(0)
potential = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(potential.parameters())


def energy(samples):
    return 0.5 * samples.square().sum(1) - potential(samples).squeeze(1)


for _ in range(6):
    real, fake = torch.randn(16, 4) + 1, torch.randn(16, 4)
    for _ in range(3):
        fake = fake.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(fake).sum(), fake)
        fake = fake - 0.1 * slope + 0.05 * torch.randn_like(fake)
    loss = energy(real).mean() - energy(fake.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
