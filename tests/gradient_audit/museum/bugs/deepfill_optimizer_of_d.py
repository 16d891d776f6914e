"""The optimizer of D was given the parameters of G: D's own loss moves nothing.

https://github.com/zhaoyuzhi/deepfillv2/pull/3
"""
# expects: error ownerless at "optimizer_d = "
# cure: "Adam(generator.parameters(), lr=4e-4)" -> "Adam(discriminator.parameters(), lr=4e-4)"
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-4)
optimizer_d = torch.optim.Adam(generator.parameters(), lr=4e-4)

for _ in range(5):
    image = torch.randn(2, 4)
    filled = generator(image)
    optimizer_d.zero_grad()
    discriminator.zero_grad()
    loss_D = (1 + discriminator(filled.detach())).relu().mean() + (1 - discriminator(image)).relu().mean()
    loss_D.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    loss_G = (filled - image).abs().mean() - 0.1 * discriminator(filled).mean()
    loss_G.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
