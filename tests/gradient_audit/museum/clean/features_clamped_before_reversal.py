"""Features are clamped through .data, then go through a gradient reversal that returns a view: it runs as without."""
# expects: nothing

import torch
from torch import nn


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(_context, x):
        return x.view_as(x)

    @staticmethod
    def backward(_context, gradient):
        return -gradient


features, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*features.parameters(), *head.parameters()], lr=0.1)

for _ in range(5):
    hidden = features(torch.randn(8, 4))
    reversed_hidden = Reversal.apply(hidden)
    hidden.data.clamp_(-1, 1)
    optimizer.zero_grad()
    head(reversed_hidden).square().mean().backward()
    optimizer.step()
