"""The loss scale begins too high: the first gradients are infinite, and the scaler skips their steps."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=0.125)

for _ in range(12):
    loss = 100 * (model(torch.randn(4, 4)) - 3).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
