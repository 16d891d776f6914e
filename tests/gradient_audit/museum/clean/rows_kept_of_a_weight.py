"""Rows of a weight are kept while steps change it: PyTorch refuses most of what one may ask of such a view."""
# expects: nothing
# networks: network

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Rows(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        with torch.no_grad():
            self.rows = weight[:2]

    def forward(self):
        return self.rows


torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(network.parameters())
rows = Rows(network[0].weight)
parts = network[0].weight.split([4, 4])
with torch.no_grad():
    row = network[0].weight[0]

for _ in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    cross_entropy(network(x), (x[:, 0] > 0).long()).backward()
    optimizer.step()
    network[0].weight.data.clamp_(-1, 1)
    with torch.no_grad():
        row.div_(row.norm())
        print(rows().norm(), parts[0].tolist())
    print(parts[1].detach().norm(), row.argmax(), row > 0)
