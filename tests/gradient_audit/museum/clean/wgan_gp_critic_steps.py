"""Three steps of the critic with a penalty for each step of the generator."""
# expects: nothing

import torch
from torch import nn

generator = nn.Linear(3, 4)
critic = nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
optimizer_G = torch.optim.Adam(generator.parameters(), betas=(0.0, 0.9))
optimizer_D = torch.optim.Adam(critic.parameters(), betas=(0.0, 0.9))

for _ in range(5):
    for _ in range(3):
        real = torch.randn(5, 4)
        with torch.no_grad():
            fake = generator(torch.randn(5, 3))
        mixed = torch.lerp(real, fake, torch.rand(5, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (slope.norm(2, dim=1) - 1).square().mean()
        d_loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer_D.zero_grad()
        d_loss.backward()
        optimizer_D.step()

    g_loss = -critic(generator(torch.randn(5, 3))).mean()
    optimizer_G.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_G.step()
