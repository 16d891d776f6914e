"""The gradients of three batches add up; after the third they are clipped, used and cleared."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.AdamW(model.parameters())

for batch in range(1, 16):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(3, (4,))) / 3
    loss.backward()
    if batch % 3 == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
