"""Two independent critics in one sum, each with its own penalty at points between real and fake."""
# expects: nothing

import torch
from torch import nn

first = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
second = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer_1 = torch.optim.Adam(first.parameters())
optimizer_2 = torch.optim.Adam(second.parameters())


def penalty(critic):
    between = torch.randn(4, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


for _ in range(5):
    loss = 0.0
    for critic in (first, second):
        loss = loss + critic(torch.randn(4, 2)).mean() - critic(torch.randn(4, 2)).mean() + 10 * penalty(critic)
    optimizer_1.zero_grad()
    optimizer_2.zero_grad()
    loss.backward()
    optimizer_1.step()
    optimizer_2.step()
