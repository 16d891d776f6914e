"""D's optimizer is made anew in every iteration, and none of them ever steps."""
# expects: error idle at "d_loss.backward()"
# cure: "    optimizer_d = torch.optim.Adam(discriminator.parameters())\n" -> ""
# cure: "for _ in range(20):" -> "optimizer_d = torch.optim.Adam(discriminator.parameters())\nfor _ in range(20):"
# cure: "    d_loss.backward()" -> "    d_loss.backward()\n    optimizer_d.step()"
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())

for _ in range(20):
    optimizer_d = torch.optim.Adam(discriminator.parameters())
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 4))
    d_loss = (1 + discriminator(fake.detach())).relu().mean() + (1 - discriminator(real)).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()

    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
