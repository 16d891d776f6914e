"""Backbone and head are a single layer each, and the optimizer was given the head alone: the backbone never learns."""
# expects: error ownerless at "backbone = nn.Linear(4, 4)"
# cure: "torch.optim.Adam(head.parameters())" -> "torch.optim.Adam([*backbone.parameters(), *head.parameters()])"
# trains: backbone

import torch
from torch import nn

backbone = nn.Linear(4, 4)
head = nn.Linear(4, 4)
optimizer = torch.optim.Adam(head.parameters())

for _ in range(20):
    x, labels = torch.randn(5, 4), torch.randint(4, (5,))
    loss = nn.functional.cross_entropy(head(backbone(x).relu()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
