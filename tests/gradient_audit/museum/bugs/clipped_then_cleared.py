"""Gradients are clipped, then cleared, then computed: what was clipped are those of the step before."""
# expects: error clipped at "clip_grad_norm_(model.parameters(), 0.01)"
# cure: "    nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n" -> ""
# cure: "    optimizer.step()" -> "    nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n    optimizer.step()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(4, 4)).square().mean()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
