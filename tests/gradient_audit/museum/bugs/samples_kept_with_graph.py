"""Pictures of fixed noise are kept for a film of the training, each with G's graph: no_grad() is missing."""
# expects: waste kept at "images.append(generator(fixed))"
# cure: "    images.append(" -> "    with torch.no_grad():\n        images.append("

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus
fixed, images = torch.randn(6, 3), []

for _ in range(8):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    images.append(generator(fixed))
