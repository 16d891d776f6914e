"""The first layer is pretrained and left out of the optimizer, which trains the two behind it."""
# expects: waste unfrozen at "loss.backward()"

import torch
from torch import nn

net = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.SGD([*net[2].parameters(), *net[4].parameters()], 0.1)
for _ in range(4):
    loss = net(torch.randn(6, 12)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
