"""The fakes for G's loss are those that were made for D under no_grad(), and D is frozen: no graph at all."""
# expects: error dead at "discriminator.requires_grad_(False)"
# expects: mistake all-frozen at "g_loss.backward()"
# says: "with torch.no_grad()"
# cure: "    with torch.no_grad():\n        fake =" -> "    fake ="
# cure: "discriminator(fake)).mean() +" -> "discriminator(fake.detach())).mean() +"
# trains: generator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    with torch.no_grad():
        fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake)).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    discriminator.requires_grad_(False)
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    discriminator.requires_grad_(True)
