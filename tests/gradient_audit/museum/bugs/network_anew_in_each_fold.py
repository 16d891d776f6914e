"""Each fold has a new network, and the optimizer stays that of the first one.

All are made at one line, and the first has learned.
"""
# expects: error ownerless at "network = nn.Sequential("
# expects: question unreached at "optimizer.step()"
# cure: "optimizer or torch" -> "torch"

import torch
from torch import nn

optimizer = None
for _ in range(3):
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optimizer or torch.optim.Adam(network.parameters())
    for _ in range(2):
        loss = (network(torch.randn(8, 4)) - torch.randn(8, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
