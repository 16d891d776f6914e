"""D's loss goes backward in every iteration, and D's optimizer never steps.

https://github.com/zhaoyuzhi/deepfillv2/issues/6
"""
# expects: error idle at "loss_D.backward()"
# cure: "    loss_D.backward()" -> "    loss_D.backward()\n    optimizer_d.step()"
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(12):
    image = torch.randn(2, 4)
    filled = generator(image)
    optimizer_d.zero_grad()
    loss_D = (1 + discriminator(filled.detach())).relu().mean() + (1 - discriminator(image)).relu().mean()
    loss_D.backward()

    optimizer_g.zero_grad()
    loss_G = (filled - image).abs().mean() - 0.1 * discriminator(filled).mean()
    loss_G.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
