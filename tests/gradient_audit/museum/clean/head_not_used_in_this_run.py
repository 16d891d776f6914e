"""A model of two heads, of which this run trains one: the other is in the optimizer, and is never called."""
# expects: question unreached at "optimizer.step()"

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, use_depth):
        super().__init__()
        self.use_depth = use_depth
        self.body, self.label, self.depth = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        features = self.body(x).relu()
        return self.depth(features) if self.use_depth else self.label(features)


model = Heads(use_depth=False)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
