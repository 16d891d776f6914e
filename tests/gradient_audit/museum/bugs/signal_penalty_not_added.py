"""A gradient penalty is computed, and D's loss goes without it.

https://github.com/LixiangHan/GANs-for-1D-Signal/issues/7
"""
# expects: question unused at "autograd.grad("
# cure: "loss_D.backward()" -> "(loss_D + grad_penalty).backward()"

import torch
from torch import nn

G = nn.Linear(3, 4)
D = nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
optimizer_G = torch.optim.Adam(G.parameters())
optimizer_D = torch.optim.Adam(D.parameters())

for _ in range(5):
    real, fake = torch.randn(5, 4), G(torch.randn(5, 3))
    mixed = torch.lerp(real, fake.detach(), torch.rand(5, 1)).requires_grad_()
    (slope,) = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
    grad_penalty = 10 * (slope.norm(2, dim=1) - 1).square().mean()
    loss_D = D(fake.detach()).mean() - D(real).mean()
    optimizer_D.zero_grad()
    loss_D.backward()
    optimizer_D.step()

    loss_G = -D(fake).mean()
    optimizer_G.zero_grad()
    loss_G.backward(inputs=list(G.parameters()))
    optimizer_G.step()
