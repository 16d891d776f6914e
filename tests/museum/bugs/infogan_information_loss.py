"""The information loss steps D together with G, which the paper does not.

https://github.com/eriklindernoren/PyTorch-GAN/issues/131
"""
# expects: question meant? at "info_loss.backward()"

import itertools

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 3)
optimizer_G = torch.optim.Adam(generator.parameters())
optimizer_D = torch.optim.Adam(discriminator.parameters())
optimizer_info = torch.optim.Adam(itertools.chain(generator.parameters(), discriminator.parameters()))

for _ in range(5):
    real, z = torch.randn(5, 4), torch.randn(5, 3)
    optimizer_G.zero_grad()
    g_loss = (discriminator(generator(z))[:, 0] - 1).square().mean()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_G.step()

    optimizer_D.zero_grad()
    fake = discriminator(generator(z).detach())[:, 0]
    d_loss = (discriminator(real)[:, 0] - 1).square().mean() + fake.square().mean()
    d_loss.backward()
    optimizer_D.step()

    optimizer_info.zero_grad()
    info_loss = (discriminator(generator(z))[:, 1:] - z[:, 1:]).square().mean()
    info_loss.backward()
    optimizer_info.step()
