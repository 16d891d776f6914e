"""A ReLU holds one of two networks back in the first steps: one question about it, not one for each rule."""
# expects: question dead at "loss = (coarse(x) - 1).squar"

import torch
from torch import nn

coarse, fine = nn.Linear(4, 1), nn.Linear(4, 1)
nn.init.constant_(fine.bias, -100.0)
optimizer = torch.optim.SGD([*coarse.parameters(), *fine.parameters()], lr=0.1)

for _ in range(5):
    x = torch.randn(6, 4)
    loss = (coarse(x) - 1).square().mean() + (fine(x).relu() - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
