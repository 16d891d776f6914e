"""A gradient penalty for each sample, without create_graph: it is added to D's loss, and is a constant."""
# expects: error dead at "(slope,) = torch.autograd.gr"
# cure: "discriminator(mixed).sum(), mixed)" -> "discriminator(mixed).sum(), mixed, create_graph=True)"

import torch
from torch import nn

discriminator = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
optimizer = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    real, fake = torch.randn(5, 4), torch.randn(5, 4)
    mixed = torch.lerp(real, fake, torch.rand(5, 1)).requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(mixed).sum(), mixed)
    penalty = (slope.norm(dim=1) - 1).square()
    d_loss = (discriminator(fake) - discriminator(real)).flatten() + 10 * penalty
    optimizer.zero_grad()
    d_loss.mean().backward()
    optimizer.step()
