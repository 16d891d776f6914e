"""`zero_grad()` runs before each of four batches that are to be accumulated, and what is left is clipped."""
# expects: question wasted at "optimizer.zero_grad()"
# cure: "    optimizer.zero_grad()\n" -> ""
# cure: "        optimizer.step()" -> "        optimizer.step()\n        optimizer.zero_grad()"

import torch
from torch import nn

network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(network.parameters())
for number in range(16):
    optimizer.zero_grad()
    loss = network(torch.randn(8, 4)).square().mean() / 4
    loss.backward()
    if number % 4 == 3:
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimizer.step()
