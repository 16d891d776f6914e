"""An optimizer that was replaced by another one before the first step, and still exists: nothing waits for it."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 1)
default = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
