"""The graph of D's fakes is dropped by detach(); on its way, G's norm has computed a scalar."""
# expects: waste graph at "fake = generator(torch.randn(5, 4)).detach()"

import torch
from torch import nn


class Norm(nn.Module):
    def forward(self, x):
        power = x.square().mean()
        return x * (power + 1e-6).rsqrt()


generator = nn.Sequential(nn.Linear(4, 4), Norm(), nn.Linear(4, 4), Norm())
discriminator = nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    fake = generator(torch.randn(5, 4)).detach()
    d_loss = (1 + discriminator(fake)).relu().mean() + (1 - discriminator(torch.randn(5, 4))).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = -discriminator(generator(torch.randn(5, 4))).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
