"""The sum of the gradients is clipped after each of three passes, and then used: one noisy batch cannot rule it."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(3, (4,))) / 3
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
