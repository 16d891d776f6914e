"""Two critics; after a warm-up of four iterations the second one gets a penalty, and it lacks create_graph."""
# expects: error dead at "(slope,) = torch.autograd.gr"
# cure: ".sum(), real)" -> ".sum(), real, create_graph=True)"

import torch
from torch import nn

generator = nn.Linear(3, 4)
critics = [nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1)) for _ in range(2)]
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_1, optimizer_2 = (torch.optim.Adam(critic.parameters()) for critic in critics)

for step in range(60):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 3))
    loss_1, loss_2 = (critic(fake.detach()).mean() - critic(real).mean() for critic in critics)
    optimizer_1.zero_grad()
    loss_1.backward()
    optimizer_1.step()
    if step > 7:
        real.requires_grad_()
        (slope,) = torch.autograd.grad(critics[1](real).sum(), real)
        loss_2 = loss_2 + 10 * slope.square().sum(dim=1).mean()
    optimizer_2.zero_grad()
    loss_2.backward()
    optimizer_2.step()
    if step % 4 == 3:
        optimizer_g.zero_grad()
        g_loss = -sum(critic(fake).mean() for critic in critics)
        g_loss.backward(inputs=list(generator.parameters()))
        optimizer_g.step()
