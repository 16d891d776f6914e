"""A helper computes the losses of D on real and fake images; only one is used, and the helper looks needed."""
# expects: question unused at "fake_loss = loss_of(fake, 1)"
# cure: "real_loss.backward()" -> "(real_loss + fake_loss).backward()"

import torch
from torch import nn

generator = nn.Linear(3, 2)
discriminator = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())


def loss_of(images, sign):
    return nn.functional.softplus(sign * discriminator(images)).mean()


for _ in range(5):
    with torch.no_grad():
        fake = generator(torch.randn(4, 3))
    real_loss = loss_of(torch.randn(4, 2), -1)
    fake_loss = loss_of(fake, 1)
    optimizer_d.zero_grad()
    real_loss.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_of(generator(torch.randn(4, 3)), -1).backward(inputs=list(generator.parameters()))
    optimizer_g.step()
