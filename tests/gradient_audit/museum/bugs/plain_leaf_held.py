"""A plain tensor under the optimizer that the loss does not use."""
# expects: error unreached at "loss = (model(torch.randn(4,"
# cure: "temperature.detach()" -> "temperature"
# trains: temperature

import torch
from torch import nn

model = nn.Linear(4, 1)
temperature = torch.ones(1, requires_grad=True)
optimizer = torch.optim.Adam([*model.parameters(), temperature])

for _ in range(5):
    loss = (model(torch.randn(4, 4)) / temperature.detach()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
