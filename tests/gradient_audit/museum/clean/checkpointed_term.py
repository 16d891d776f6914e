"""A term of the loss is checkpointed, so its part of the graph shows no parameter until the backward pass runs."""
# expects: nothing

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

trunk, head = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()])

for _ in range(5):
    features = trunk(torch.randn(5, 4))
    score = checkpoint(head, features, use_reentrant=True)
    loss = features.square().mean() - score.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
