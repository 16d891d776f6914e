"""The loss is scaled for mixed precision; the optimizer steps itself, on gradients that are 1,024 times too large."""
# expects: error scaled at "optimizer.step()"
# cure: "    optimizer.step()" -> "    scaler.step(optimizer)\n    scaler.update()"

import torch
from torch import nn

network = nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(5):
    loss = network(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()
