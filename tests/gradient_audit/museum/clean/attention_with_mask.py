"""Scores of padding are -inf before the softmax: no weight is NaN, and no gradient."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)
queries, keys, values = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(4, 4)
optimizer = torch.optim.Adam([p for layer in (queries, keys, values) for p in layer.parameters()])
padding = torch.tensor([False, False, False, True, True])

for _ in range(5):
    x = torch.randn(2, 5, 4)
    scores = queries(x) @ keys(x).transpose(1, 2)
    weights = scores.masked_fill(padding, float("-inf")).softmax(dim=2)
    loss = (weights @ values(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
