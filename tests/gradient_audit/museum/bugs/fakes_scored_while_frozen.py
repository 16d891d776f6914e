"""D is unfrozen after it has scored the fakes for its own loss, so that it learns from real images alone."""
# expects: question dead at "fake_score = "
# says: If this is for discriminator, call its `requires_grad_(True)` before.
# cure: "    fake_score = discriminator(fake.detach())\n" -> ""
# cure: "    real_score" -> "    fake_score = discriminator(fake.detach())\n    real_score"

import torch
from torch import nn
from torch.nn.functional import softplus

generator, discriminator = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(6):
    discriminator.requires_grad_(False)
    fake = generator(torch.randn(8, 2))
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    fake_score = discriminator(fake.detach())
    discriminator.requires_grad_(True)
    real_score = discriminator(torch.randn(8, 4))
    d_loss = softplus(-real_score).mean() + softplus(fake_score).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
