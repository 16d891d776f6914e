"""Gradients of two passes are accumulated, and unscaled after each of them.

No public report of it was found.
"""
# expects: mistake unscaled-twice at "scaler.unscale_(optimizer)"
# cure: "    scaler.unscale_(optimizer)\n    if step % 2:\n" -> "    if step % 2:\n        scaler.unscale_(optimizer)\n"
# trains: net

import torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
for step in range(12):
    scaler.scale(net(torch.randn(8, 4)).square().mean()).backward()
    scaler.unscale_(optimizer)
    if step % 2:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
