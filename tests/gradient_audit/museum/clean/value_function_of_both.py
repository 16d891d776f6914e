"""G and D share a value function, as the minimax game is written: the term D(real) is a constant for G."""
# expects: question dead at "value(real, generator(z))"
# expects: waste graph at "value(real, generator(z).detach())"

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())


def value(real, fake):
    on_real = torch.log(discriminator(real)).mean()
    return on_real + torch.log(1 - discriminator(fake)).mean()


for _ in range(5):
    real, z = torch.randn(8, 4), torch.randn(8, 3)
    d_loss = -value(real, generator(z).detach())
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = value(real, generator(z))
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[*generator.parameters()])
    optimizer_g.step()
