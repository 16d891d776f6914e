"""The first layer of D is frozen for fine-tuning (FreezeD): the table says how much of D learns."""
# expects: nothing
# says: used 2 of 4

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
discriminator[0].requires_grad_(False)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam([p for p in discriminator.parameters() if p.requires_grad])
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
