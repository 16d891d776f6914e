"""The average of the weights is updated with autograd on: its graph grows at every step and holds all memory."""
# expects: waste graph at "slow.mul_(0.9).add_(fast, alpha=0.1)"
# cure: "        slow.mul_" -> "        with torch.no_grad():\n            slow.mul_"

import torch
from torch import nn

model, average = nn.Linear(4, 1), nn.Linear(4, 1).requires_grad_(False)
average.load_state_dict(model.state_dict())
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.mul_(0.9).add_(fast, alpha=0.1)
