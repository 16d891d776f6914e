"""A pool of old fakes for D, each with its graph: when the first one comes back, a second backward pass raises."""
# expects: waste kept at "fake = generator("
# cure: "append(fake)" -> "append(fake.detach())"

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))
discriminator = nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus
pool = []

for _ in range(8):
    fake = generator(torch.randn(5, 3))
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()

    pool.append(fake)
    old = pool.pop(0) if len(pool) > 5 else fake.detach()
    d_loss = softplus(discriminator(old)).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
