"""A batch norm is called and its result is dropped: the network trains without it."""
# expects: question unreached at "optimizer.step()"

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)

    def forward(self, x):
        x = self.inner(x)
        self.norm(x)
        return self.outer(x.relu())


model = Network()
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
