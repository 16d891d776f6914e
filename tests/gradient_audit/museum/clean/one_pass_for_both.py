"""The published one-stage update: D's loss alone goes backward, and the gradient at the fakes is turned for G."""
# expects: nothing

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = Reverse.apply(generator(torch.randn(5, 3)))
    d_loss = discriminator(fake).mean() - discriminator(torch.randn(5, 4)).mean()
    optimizer_g.zero_grad()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_g.step()
    optimizer_d.step()
