"""Gradients of three batches add up, and are cleared after each step: the same pass comes several times per step."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.AdamW(model.parameters())

for step in range(1, 13):
    features, labels = torch.randn(4, 4), torch.randint(3, (4,))
    loss = nn.functional.cross_entropy(model(features), labels) / 3
    loss.backward()
    if step % 3 == 0:
        optimizer.step()
        optimizer.zero_grad()
