"""D's loss has had its own step; detached, it is added to G's for the total that is printed."""
# expects: question dead at "total = g_loss + d_loss.deta"

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 4))
    d_loss = discriminator(fake.detach()).relu().mean() + (1 - discriminator(real)).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = -discriminator(fake).mean()
    total = g_loss + d_loss.detach()
    optimizer_g.zero_grad()
    total.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    print(f"total {total.item():.3f}")
