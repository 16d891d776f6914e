"""The line that the scaler replaces was left in: the optimizer steps twice on one gradient."""
# expects: error stale at "optimizer.step()"
# cure: "    optimizer.step()" -> ""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)

for _ in range(5):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.step()
