"""WGAN-GP with a lazy penalty that the first steps show: all of the script was watched."""
# expects: nothing
# says: Nothing wrong, nothing wasted.

import torch
from torch import nn

generator = nn.Linear(3, 4)
critic = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(critic.parameters())

for step in range(60):
    real, fake = torch.randn(5, 4), generator(torch.randn(5, 3))
    d_loss = critic(fake.detach()).mean() - critic(real).mean()
    if step % 2 == 0:
        mixed = torch.lerp(real, fake.detach(), torch.rand(5, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        d_loss = d_loss + 20 * (slope.norm(dim=1) - 1).square().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    if step % 3 == 2:
        g_loss = -critic(fake).mean()
        optimizer_g.zero_grad()
        g_loss.backward(inputs=list(generator.parameters()))
        optimizer_g.step()
