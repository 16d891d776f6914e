"""A scale that is a buffer, and codes in a list: leaves of a module that are no parameters, with names from it."""
# expects: nothing
# networks: net, net.scale, net.codes[0], net.codes[1]

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4, requires_grad=True))
        self.codes = [torch.randn(4, requires_grad=True) for _ in range(2)]

    def forward(self, x):
        return self.layer(x) * self.scale + sum(self.codes)


net = Net()
optimizer = torch.optim.Adam([*net.parameters(), net.scale, *net.codes])

for _ in range(5):
    optimizer.zero_grad()
    net(torch.randn(3, 4)).square().mean().backward()
    optimizer.step()
