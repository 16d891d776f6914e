"""Gradients are clipped after the step, and cleared before the next: no step is on what was clipped."""
# expects: error clipped at "clip_grad_norm_(model.parameters(), 1.0)"
# cure: "optimizer.step()\n    nn" -> "nn"
# cure: "(model.parameters(), 1.0)" -> "(model.parameters(), 1.0)\n    optimizer.step()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
