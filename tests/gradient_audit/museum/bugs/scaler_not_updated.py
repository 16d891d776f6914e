"""scaler.update() was left out with the code that logged the scale: the second step of the scaler raises."""
# expects: mistake scaler-not-updated at "    scaler.step(optimizer)"
# cure: "    scaler.step(optimizer)" -> "    scaler.step(optimizer)\n    scaler.update()"
# trains: net

import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())
scaler = torch.amp.GradScaler("cpu")

for _ in range(5):
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
