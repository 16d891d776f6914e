"""The losses of both players go backward once, as a sum: D is frozen while it scores G's fakes, and G's are detached.

Each term moves one player, so that both step on what two passes with `inputs=` would give them.
"""
# expects: nothing
# networks: netG, netD

import torch
from torch import nn

netG, netD = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
optimizer_g, optimizer_d = torch.optim.Adam(netG.parameters()), torch.optim.Adam(netD.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = netG(torch.randn(5, 3))
    d_loss = softplus(-netD(torch.randn(5, 4))).mean() + softplus(netD(fake.detach())).mean()
    netD.requires_grad_(False)
    g_loss = softplus(-netD(fake)).mean()
    netD.requires_grad_(True)
    optimizer_g.zero_grad()
    optimizer_d.zero_grad()
    (d_loss + g_loss).backward()
    optimizer_d.step()
    optimizer_g.step()
