"""Blocks under checkpoint(), of the old form and the new: the passes inside a pass are part of it."""
# expects: nothing

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2))
head = nn.Linear(4, 3)
optimizer = torch.optim.Adam([*blocks.parameters(), *head.parameters()])

for _ in range(5):
    x, labels = torch.randn(4, 4, requires_grad=True), torch.randint(3, (4,))
    x = checkpoint(blocks[0], x, use_reentrant=True)
    x = checkpoint(blocks[1], x, use_reentrant=False)
    loss = nn.functional.cross_entropy(head(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
