"""step() is called twice in a row."""
# expects: error stale at "optimizer.step()  # again"
# cure: "    optimizer.step()  # again" -> ""

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    optimizer.step()  # again
