"""Weights are updated by hand, and their gradients are never cleared."""
# expects: error stale at "loss.backward()"
# cure: "p -= 0.1 * p.grad" -> "p -= 0.1 * p.grad; p.grad = None"
# trains: network

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
network = nn.Linear(6, 2)
for _ in range(8):
    x = torch.randn(16, 6)
    loss = mse_loss(network(x), x[:, :2])
    loss.backward()
    with torch.no_grad():
        for p in network.parameters():
            p -= 0.1 * p.grad
