"""Reads a file of the current folder, imports a module of its own called `common`, ends by itself after two steps."""

import sys
from pathlib import Path

import torch

from common import make_net

net = make_net(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=float(Path("settings.txt").read_text()))
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()
print("arguments:", sys.argv[1:], "name:", __name__)
