"""What is kept of each step has no graph: a number, a detached loss, pictures under no_grad(), a detached average."""
# expects: nothing

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus
fixed, images, losses, total, average = torch.randn(6, 3), [], [], 0.0, 0.0

for _ in range(8):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    losses.append(d_loss.detach())
    total += d_loss.item()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    average = 0.9 * average + 0.1 * g_loss.detach()
    with torch.no_grad():
        images.append(generator(fixed))
