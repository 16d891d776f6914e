"""D is frozen for G's loss and never unfrozen: D's next loss, on detached fakes, has nothing that requires grad."""
# expects: error dead at "discriminator.requires_grad_(False)"
# expects: mistake all-frozen at "d_loss.backward()"
# says: "discriminator.requires_grad_(False)"
# cure: "    d_loss =" -> "    discriminator.requires_grad_(True)\n    d_loss ="
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    discriminator.requires_grad_(False)
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
