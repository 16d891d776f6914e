"""InfoGAN: a third optimizer holds G and D, and both step on the information loss.

https://github.com/eriklindernoren/PyTorch-GAN/issues/131
"""
# expects: nothing

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
    with torch.no_grad():
        fake = generator(z)
    d_loss = (discriminator(real)[:, 0] - 1).square().mean() + discriminator(fake)[:, 0].square().mean()
    d_loss.backward()
    optimizer_D.step()

    optimizer_info.zero_grad()
    info_loss = (discriminator(generator(z))[:, 1:] - z[:, 1:]).square().mean()
    info_loss.backward()
    optimizer_info.step()
