"""A network can be a bare nn.Module() that only holds layers."""
# expects: nothing
# networks: model

import torch
from torch import nn

model = nn.Module()
model.first = nn.Linear(4, 8)
model.last = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = model.last(model.first(torch.randn(2, 4)).relu()).square().mean()
    loss.backward()
    optimizer.step()
