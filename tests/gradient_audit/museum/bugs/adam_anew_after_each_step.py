"""An optimizer is made anew after each step, for another rate: its moments are lost."""
# expects: question renewed at "lr=5e-4"
# cure: "    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4)" -> ""
# trains: network

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(network.parameters())
for _ in range(12):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    mse_loss(network(x), x).backward()
    optimizer.step()
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4)
