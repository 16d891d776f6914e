"""The parentheses of G's backward() are missing; the detach() of D's loss is right, and is not to blame."""
# expects: error unreached at "g_loss = "
# expects: waste graph at "fake = "
# says: This looks like a loss for them, and got no `backward()`
# cure: "    g_loss.backward " -> "    g_loss.backward() "

import torch
from torch import nn
from torch.nn.functional import softplus

generator, discriminator = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(6):
    fake = generator(torch.randn(8, 4))
    optimizer_d.zero_grad()
    d_loss = softplus(-discriminator(torch.randn(8, 8))).mean() + softplus(discriminator(fake.detach())).mean()
    d_loss.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss = softplus(-discriminator(fake)).mean()
    g_loss.backward  # noqa: B018
    optimizer_g.step()
