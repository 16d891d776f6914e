"""WGAN-GP in mixed precision: autograd.grad with create_graph inside the critic's loss, GradScaler, clipping."""

import torch
from torch import autograd, nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 1))
g_optim = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0.0, 0.9))
c_optim = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


def gradient_penalty(real, fake):
    alpha = torch.rand(len(real), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_()
    (gradients,) = autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def toggle(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


for _ in range(100000):
    for _ in range(2):
        toggle(critic, True)
        real, fake = torch.randn(8, 4), generator(torch.randn(8, 8)).detach()
        with torch.autocast("cpu", enabled=False):
            loss_c = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)
        c_optim.zero_grad()
        scaler.scale(loss_c).backward()
        scaler.unscale_(c_optim)
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        scaler.step(c_optim)
        scaler.update()
    toggle(critic, False)
    loss_g = -critic(generator(torch.randn(8, 8))).mean()
    g_optim.zero_grad()
    scaler.scale(loss_g).backward()
    scaler.step(g_optim)
    scaler.update()
