"""A loss that has a derivative by forward mode, as consistency and mean flow models do, and is printed."""
# expects: nothing

import torch
from torch import nn

network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

for _ in range(5):
    x, direction = torch.randn(8, 4), torch.randn(8, 4)
    out, slope = torch.func.jvp(network, (x,), (direction,))
    loss = (out - (direction - 0.1 * slope).detach()).square().mean() + 0.1 * slope.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
