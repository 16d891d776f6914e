"""Both networks under torch.compile; D is frozen in G's step, for a compiled D ignores inputs=."""
# expects: nothing
# networks: generator, discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
G, D = (torch.compile(network, backend="aot_eager") for network in (generator, discriminator))

for _ in range(5):
    fake = G(torch.randn(5, 3))
    discriminator.requires_grad_(True)
    d_loss = D(fake.detach()).mean() - D(torch.randn(5, 4)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    discriminator.requires_grad_(False)
    g_loss = -D(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
