"""Fakes are judged in chunks, in one line; their scores live until the loss of this iteration."""
# expects: nothing

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(8):
    fake, real = generator(torch.randn(8, 3)), torch.randn(8, 4)
    fake_scores = torch.cat([discriminator(part) for part in fake.detach().chunk(4)])
    real_scores = torch.cat([discriminator(part) for part in real.chunk(4)])
    d_loss = softplus(fake_scores).mean() + softplus(-real_scores).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-torch.cat([discriminator(part) for part in fake.chunk(4)])).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
