"""Gradients replaced by clamped copies of themselves before each step."""
# expects: nothing

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(4, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(4, 2)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    for parameter in discriminator.parameters():
        parameter.grad = parameter.grad.clamp(-0.1, 0.1)
    optimizer_d.step()

    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    for parameter in generator.parameters():
        parameter.grad = parameter.grad.clamp(-0.1, 0.1)
    optimizer_g.step()
