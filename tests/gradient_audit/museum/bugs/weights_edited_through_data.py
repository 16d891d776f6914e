"""Weights are clamped through .data when a loss has used them: PyTorch cannot see it, and the gradient is wrong.

A form that people write after the in-place error, because .data makes it go away.
"""
# expects: error overwritten at "weight.data.clamp_("
# mistake: data-edit
# cure: "    head.weight.data.clamp_(-0.1, 0.1)\n" -> ""
# cure: "    optimizer.step()" -> "    optimizer.step()\n    head.weight.data.clamp_(-0.1, 0.1)"

import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

for _ in range(5):
    scores = head(encoder(torch.randn(8, 4)).tanh())
    head.weight.data.clamp_(-0.1, 0.1)
    optimizer.zero_grad()
    scores.square().mean().backward()
    optimizer.step()
