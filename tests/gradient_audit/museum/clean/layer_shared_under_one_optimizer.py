"""Two networks share a layer, and one optimizer holds both: one player, which no loss reaches by mistake."""
# expects: nothing
# networks: first, second
# says: | 3x    | used     | used

import torch
from torch import nn

shared = nn.Linear(2, 1)
first, second = nn.Sequential(nn.Linear(2, 2), shared), nn.Sequential(nn.Linear(2, 2), shared)
optimizer = torch.optim.SGD({*first.parameters(), *second.parameters()}, lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    (first(torch.ones(1, 2)) + second(torch.ones(1, 2))).sum().backward()
    optimizer.step()
