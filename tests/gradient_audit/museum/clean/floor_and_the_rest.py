"""A table is read between two cells: the rest moves the place, not floor(). A branch is faded in, from zero."""
# expects: nothing
# networks: network

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.place, self.branch = nn.Linear(4, 1), nn.Linear(4, 4)
        self.values = nn.Embedding(9, 4)

    def forward(self, x, faded):
        place = 7 * torch.sigmoid(self.place(x).squeeze(1))
        cell = place.floor()
        rest = (place - cell)[:, None]
        return torch.lerp(self.values(cell.long()), self.values(cell.long() + 1), rest) + faded * self.branch(x)


torch.manual_seed(0)
network = Table()
optimizer = torch.optim.Adam(network.parameters())

for step in range(12):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    (network(x, max(0, step - 4) / 8) - x.sin()).square().mean().backward()
    optimizer.step()
