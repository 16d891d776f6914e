"""The critic's penalty of every thirteenth step lacks create_graph, and comes after many passes for the first time."""
# expects: error dead at "(slope,) = torch.autograd.gr"
# mistake: penalty-without-graph
# cure: ".sum(), real)" -> ".sum(), real, create_graph=True)"

import torch
from torch import nn

generator = nn.Linear(3, 4)
critic = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(critic.parameters())

for step in range(60):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 3))
    d_loss = critic(fake.detach()).mean() - critic(real).mean()
    if step % 13 == 12:
        real.requires_grad_()
        (slope,) = torch.autograd.grad(critic(real).sum(), real)
        d_loss = d_loss + 10 * slope.square().sum(dim=1).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    if step % 5 == 4:
        g_loss = -critic(fake).mean()
        optimizer_g.zero_grad()
        g_loss.backward(inputs=list(generator.parameters()))
        optimizer_g.step()
