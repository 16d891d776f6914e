"""G's loss is computed under no_grad(); `requires_grad_()` silences the error, and D's detach() is right."""
# expects: error unreached at "with torch.no_grad():"
# cure: "    with torch.no_grad():\n        g_loss = " -> "    g_loss = "
# cure: "    g_loss.requires_grad_()\n" -> ""
# trains: generator

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

    with torch.no_grad():
        g_loss = softplus(-discriminator(fake)).mean()
    g_loss.requires_grad_()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
