"""Gradients are clipped before the scaler takes its factor out of them: the bound is 1024 times too small."""
# expects: error scaled at "clip_grad_norm_(model.parameters(), 1.0)"
# mistake: clip-before-unscale
# cure: "    nn.utils.clip" -> "    scaler.unscale_(optimizer)\n    nn.utils.clip"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(5):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
