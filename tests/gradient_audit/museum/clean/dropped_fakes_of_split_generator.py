"""D's fakes are cut by detach(); a norm between G's parts, of which a loss trains one alone, has computed a scalar."""
# expects: waste graph at "fake = generator(torch.randn(5, 4)).detach()"

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.mapping, self.synthesis = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, z):
        w = self.mapping(z)
        w = w * (w.square().mean() + 1e-6).rsqrt()
        return self.synthesis(w)


generator, discriminator = Generator(), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    fake = generator(torch.randn(5, 4)).detach()
    d_loss = (1 + discriminator(fake)).relu().mean() + (1 - discriminator(torch.randn(5, 4))).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    g_loss = -discriminator(generator(torch.randn(5, 4))).mean()
    g_loss.backward(inputs=list(generator.parameters()))
    size = generator.mapping(torch.randn(5, 4)).square().mean()
    size.backward()
    optimizer_g.step()
