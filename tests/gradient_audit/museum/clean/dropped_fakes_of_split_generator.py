"""D's fakes are detached; norms in the parts of G, which have an optimizer each, have computed scalars."""
# expects: waste graph at "fake = generator(torch.randn(5, 4)).detach()"

import torch
from torch import nn


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        power = x.square().mean()
        return x * (power + 1e-6).rsqrt()


generator, discriminator = nn.Sequential(Normed(), Normed()), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator[1].parameters())
optimizer_m = torch.optim.Adam(generator[0].parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(20):
    fake = generator(torch.randn(5, 4)).detach()
    d_loss = (1 + discriminator(fake)).relu().mean() + (1 - discriminator(torch.randn(5, 4))).relu().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = -discriminator(generator(torch.randn(5, 4))).mean()
    generator.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    optimizer_m.step()
