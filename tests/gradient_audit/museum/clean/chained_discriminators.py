"""CycleGAN: two generators under one optimizer and two discriminators under another, frozen in between."""
# expects: nothing

import itertools

import torch
from torch import nn

G_AB, G_BA, D_A, D_B = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
optimizer_G = torch.optim.Adam(itertools.chain(G_AB.parameters(), G_BA.parameters()))
optimizer_D = torch.optim.Adam(itertools.chain(D_A.parameters(), D_B.parameters()))

for _ in range(5):
    real_A, real_B = torch.randn(2, 4), torch.randn(2, 4)
    for network in (D_A, D_B):
        network.requires_grad_(False)
    fake_B, fake_A = G_AB(real_A), G_BA(real_B)
    cycle = (G_BA(fake_B) - real_A).abs().mean() + (G_AB(fake_A) - real_B).abs().mean()
    loss_G = (D_B(fake_B) - 1).square().mean() + (D_A(fake_A) - 1).square().mean() + 10 * cycle
    optimizer_G.zero_grad()
    loss_G.backward()
    optimizer_G.step()

    for network in (D_A, D_B):
        network.requires_grad_(True)
    optimizer_D.zero_grad()
    for network, real, fake in ((D_A, real_A, fake_A), (D_B, real_B, fake_B)):
        loss_D = (network(real) - 1).square().mean() + network(fake.detach()).square().mean()
        loss_D.backward()
    optimizer_D.step()
