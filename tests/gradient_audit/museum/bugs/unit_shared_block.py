"""Two encoders share a block, and their optimizer was given the parameters of both: each step moves the block twice.

https://github.com/pytorch/pytorch/issues/40967
"""
# expects: error twice at "optimizer.step()"
# cure: "Adam(itertools" -> "Adam(list(dict.fromkeys(itertools"
# cure: "E2.parameters())" -> "E2.parameters())))"
# mistake: parameter-twice

import itertools
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of it
shared = nn.Linear(3, 3)
E1, E2 = nn.Sequential(nn.Linear(4, 3), shared), nn.Sequential(nn.Linear(4, 3), shared)
optimizer = torch.optim.Adam(itertools.chain(E1.parameters(), E2.parameters()), lr=1e-4)

for _ in range(5):
    optimizer.zero_grad()
    loss = (E1(torch.randn(2, 4)) - E2(torch.randn(2, 4))).square().mean()
    loss.backward()
    optimizer.step()
