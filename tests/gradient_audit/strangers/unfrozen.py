"""Both backward passes, then both steps, and nothing keeps G's loss out of D; both networks inside one module."""

import torch
from torch import nn


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        self.discriminator = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def losses(self, real, z):
        fake = self.generator(z)
        d_loss = self.discriminator(fake.detach()).square().mean() + (self.discriminator(real) - 1).square().mean()
        return d_loss, (self.discriminator(fake) - 1).square().mean()


def fit(gan, optimizers, steps):
    for _ in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        d_loss, g_loss = gan.losses(torch.randn(8, 4), torch.randn(8, 8))
        d_loss.backward()
        g_loss.backward()
        for optimizer in optimizers:
            optimizer.step()


def main():
    gan = GAN()
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.01) for net in (gan.generator, gan.discriminator)]
    fit(gan, optimizers, steps=100000)


main()
