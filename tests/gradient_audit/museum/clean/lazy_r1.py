"""StyleGAN2's order: requires_grad is toggled for each phase, and the R1 penalty is a step of its own now and then."""
# expects: nothing

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
g_optim = torch.optim.Adam(generator.parameters(), betas=(0.0, 0.99))
d_optim = torch.optim.Adam(discriminator.parameters(), betas=(0.0, 0.99))
softplus = nn.functional.softplus

for step in range(8):
    real = torch.randn(5, 4)
    generator.requires_grad_(False)
    discriminator.requires_grad_(True)
    d_loss = softplus(-discriminator(real)).mean() + softplus(discriminator(generator(torch.randn(5, 3)))).mean()
    discriminator.zero_grad()
    d_loss.backward()
    d_optim.step()
    if step % 2 == 0:
        real.requires_grad = True
        real_pred = discriminator(real)
        (slope,) = torch.autograd.grad(real_pred.sum(), real, create_graph=True)
        r1_loss = slope.square().sum(1).mean()
        discriminator.zero_grad()
        (5 * r1_loss * 2 + 0 * real_pred[0, 0]).backward()
        d_optim.step()

    generator.requires_grad_(True)
    discriminator.requires_grad_(False)
    g_loss = softplus(-discriminator(generator(torch.randn(5, 3)))).mean()
    generator.zero_grad()
    g_loss.backward()
    g_optim.step()
