"""G's gradients are clipped before its step, D's after its own."""
# expects: error clipped at "clip_grad_value_(discriminator.parameters(), 0.1)"
# cure: "optimizer_d.step()\n    nn" -> "nn"
# cure: "discriminator.parameters(), 0.1)" -> "discriminator.parameters(), 0.1)\n    optimizer_d.step()"

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
    nn.utils.clip_grad_value_(discriminator.parameters(), 0.1)

    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    nn.utils.clip_grad_value_(generator.parameters(), 0.1)
    optimizer_g.step()
