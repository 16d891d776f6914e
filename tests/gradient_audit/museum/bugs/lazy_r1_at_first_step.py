"""The R1 penalty of every fourth step lacks create_graph; three steps show it once."""
# expects: error dead at "(slope,) = torch.autograd.gr"
# cure: "discriminator(real).sum(), real)" -> "discriminator(real).sum(), real, create_graph=True)"
# mistake: penalty-without-graph

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
discriminator = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for step in range(60):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(real)).mean()
    if step % 4 == 0:
        real.requires_grad_()
        (slope,) = torch.autograd.grad(discriminator(real).sum(), real)
        d_loss = d_loss + 20 * slope.square().sum(1).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
