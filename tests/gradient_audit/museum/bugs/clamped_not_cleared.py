"""Without zero_grad, D steps on clamped gradients of G's loss."""
# expects: error mixed at "g_loss.backward()"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"
# mistake: d-steps-on-g-loss

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(4, 3))
    optimizer_g.zero_grad()
    g_loss = -discriminator(fake).mean()
    g_loss.backward()
    optimizer_g.step()
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(4, 2)).mean()
    d_loss.backward()
    for parameter in discriminator.parameters():
        parameter.grad = parameter.grad.clamp(-0.1, 0.1)
    optimizer_d.step()
    optimizer_d.zero_grad()
