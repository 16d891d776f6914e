"""The call of D's step lacks its parentheses; the limit ends the audit, and D's gradients are cleared each time."""
# expects: error idle at "d_loss.backward()"
# cure: "optimizer_d.step  #" -> "optimizer_d.step()  #"
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(300):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 4))
    d_loss = (1 + discriminator(fake.detach())).relu().mean() + (1 - discriminator(real)).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step  # noqa: B018

    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
