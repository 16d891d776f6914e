"""Fakes for D drop their graph, and a normalising step of G computes a scalar on the way: one waste, no lost loss."""
# expects: waste graph at "fake = synthesis(normalised(mapping(torch.randn(8, 4))))"

import torch
from torch import nn

torch.manual_seed(0)


def normalised(x):
    return x / x.norm()


mapping, synthesis = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Sequential(nn.Linear(4, 4), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer_g = torch.optim.Adam([*mapping.parameters(), *synthesis.parameters()])
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    fake = synthesis(normalised(mapping(torch.randn(8, 4))))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(8, 4)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    discriminator.requires_grad_(False)
    g_loss = -discriminator(synthesis(normalised(mapping(torch.randn(8, 4))))).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    discriminator.requires_grad_(True)
