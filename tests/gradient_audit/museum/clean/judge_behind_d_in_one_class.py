"""One class holds D and features that judge, which nobody froze; G's loss also fills D's gradients: waste of both."""
# expects: waste unfrozen at "g_loss.backward()"
# expects: waste wasted at "g_loss.backward()"

import torch
from torch import nn


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.discriminator = nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
        self.vgg = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


generator, losses = nn.Linear(4, 4), Losses()
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(losses.discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    blurred, sharp = torch.randn(5, 4), torch.randn(5, 4)
    fake = generator(blurred)
    d_loss = softplus(losses.discriminator(fake.detach())).mean() + softplus(-losses.discriminator(sharp)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    with torch.no_grad():
        wanted = losses.vgg(sharp)
    g_loss = softplus(-losses.discriminator(fake)).mean() + (losses.vgg(fake) - wanted).square().mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
