"""`d_loss.backward` without parentheses: D steps on nothing, as what G's loss gave it is cleared before."""
# expects: error unreached at "d_loss = (losses.softplus(-discriminator(real)) + losses.softplus("
# cure: "    d_loss.backward " -> "    d_loss.backward() "
# cure: "    g_loss.backward()" -> "    g_loss.backward(inputs=list(generator.parameters()))"

import torch
from torch import nn
from torch.nn import functional as losses

generator, discriminator = nn.Linear(4, 2), nn.Linear(2, 1)
optimizer_g, optimizer_d = (torch.optim.Adam(network.parameters()) for network in (generator, discriminator))
for _ in range(5):
    real, fake = torch.randn(8, 2), generator(torch.randn(8, 4))
    optimizer_d.zero_grad()
    d_loss = (losses.softplus(-discriminator(real)) + losses.softplus(discriminator(fake.detach()))).mean()
    d_loss.backward  # noqa: B018
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss = losses.softplus(-discriminator(fake)).mean()
    g_loss.backward()
    optimizer_g.step()
