"""A layer is replaced in the first step, after the optimizer was made, which holds the old one from then on.

No public report of it was found.
"""
# expects: error ownerless at "net[0] = nn.Linear(4, 8)"
# mistake: optimizer-old-weights
# cure: "net[0] = nn.Linear(4, 8)" -> "net[0] = nn.Linear(4, 8)\n        optimizer = SGD(net.parameters(), 0.1)"
# trains: net

import torch
from torch import nn
from torch.optim import SGD

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = SGD(net.parameters(), 0.1)
for step in range(8):
    if step == 0:
        net[0] = nn.Linear(4, 8)
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
