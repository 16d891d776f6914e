"""A learned optimizer, trained on windows of its steps: no gradient of a window's first loss is to be used.

Andrychowicz et al., "Learning to learn by gradient descent by gradient descent" (2016).
"""
# expects: nothing

import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
weight, theta = torch.randn(5, 5), torch.randn(5, requires_grad=True)

for _ in range(6):
    total = 0
    for _ in range(5):
        loss = (weight @ theta).square().sum()
        total = total + loss
        (gradient,) = torch.autograd.grad(loss, theta, retain_graph=True)
        theta = theta + 0.1 * net(gradient.detach()[:, None]).squeeze(1)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    theta = theta.detach().requires_grad_()
