"""A classifier whose gradients are never cleared.

https://github.com/wenet-e2e/wekws/pull/73
"""
# expects: error stale at "loss.backward()"
# cure: "    loss.backward()" -> "    optimizer.zero_grad()\n    loss.backward()"
# mistake: no-zero-grad

import torch
from torch import nn

model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

for _ in range(5):
    features, target = torch.randn(4, 6), torch.randint(3, (4,))
    loss = nn.functional.cross_entropy(model(features), target)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
