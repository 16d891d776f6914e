"""Features are masked through .data after a layer has used them: PyTorch cannot see it, and the gradient is wrong.

A form that people write after the in-place error, because .data makes it go away.
"""
# expects: error overwritten at "features.data.mul_("
# mistake: data-edit
# cure: "    scores = head(features)\n" -> ""
# cure: "features.data.mul_(" -> "features = features * ("
# cure: "    optimizer.zero_grad()" -> "    scores = head(features)\n    optimizer.zero_grad()"

import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

for _ in range(5):
    features = encoder(torch.randn(8, 4)).tanh()
    scores = head(features)
    features.data.mul_(torch.rand(8, 4) < 0.5)
    optimizer.zero_grad()
    scores.square().mean().backward()
    optimizer.step()
