"""The slope at the images by backward(create_graph=True), limited to them: D's gradients are those of its loss."""
# expects: nothing

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    real, fake = torch.randn(5, 4, requires_grad=True), generator(torch.randn(5, 3))
    discriminator(real).sum().backward(inputs=[real], create_graph=True)
    penalty = real.grad.square().sum(dim=1).mean()
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(real)).mean() + 5 * penalty
    optimizer_d.zero_grad()
    d_loss.backward(inputs=list(discriminator.parameters()))
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
