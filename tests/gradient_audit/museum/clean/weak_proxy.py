"""A weakref.proxy of a network is in reach, as in every Lightning script, also one whose network is gone."""
# expects: nothing
# networks: model

import weakref

import torch
from torch import nn

model = nn.Linear(4, 1)
handles = [weakref.proxy(model), weakref.proxy(nn.Linear(1, 1))]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
