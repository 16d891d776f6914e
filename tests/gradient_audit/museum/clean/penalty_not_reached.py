"""The R1 penalty of every sixteenth step is right, and three steps do not show it: said beside the verdict."""
# expects: nothing
# says: Not reached: "torch.autograd.grad("

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for step in range(60):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(real)).mean()
    if step % 16 == 15:
        real.requires_grad_()
        (slope,) = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
        d_loss = d_loss + 80 * slope.square().sum(dim=1).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
