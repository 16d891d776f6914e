"""The largest gradient of each network is limited after the step, by a norm of infinity."""
# expects: error clipped at "0.1, inf)"
# expects: error clipped at "norm_type=inf"
# cure: "    optimizer_d.step()\n    nn.utils" -> "    nn.utils"
# cure: "(discriminator.parameters(), 0.1, inf)\n" -> "(discriminator.parameters(), 0.1, inf)\n    optimizer_d.step()\n"
# cure: "    optimizer_g.step()\n    nn.utils" -> "    nn.utils"
# cure: "norm_type=inf, max_norm=0.1)\n" -> "norm_type=inf, max_norm=0.1)\n    optimizer_g.step()\n"

from math import inf

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(5, 4)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    nn.utils.clip_grad_norm_(discriminator.parameters(), 0.1, inf)

    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    nn.utils.clip_grad_norm_(generator.parameters(), norm_type=inf, max_norm=0.1)
