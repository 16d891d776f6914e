"""A step inside a mode that dispatches each operation once more, as one that counts FLOPs."""
# expects: nothing

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

A = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = torch.optim.Adam(A.parameters())
for _ in range(6):
    with FlopCounterMode(display=False):
        loss = A(torch.randn(8, 4)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
