"""A layer and the optimizer are replaced together: the old optimizer shares a layer with it, and never steps again."""
# expects: nothing

import torch
from torch import nn
from torch.optim import SGD

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = SGD(net.parameters(), 0.1)
for step in range(6):
    if step == 2:
        net[0] = nn.Linear(4, 8)
        optimizer = SGD(net.parameters(), 0.1)
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
