"""Cells in a Python list are no part of the module: its optimizer does not hold them.

https://github.com/ikostrikov/pytorch-meta-optimizer/issues/11
"""
# expects: error ownerless at "self.cells = "
# cure: "[nn.GRUCell(4, 4)]" -> "nn.ModuleList([nn.GRUCell(4, 4)])"

import torch
from torch import nn


class MetaOptimizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.cells = [nn.GRUCell(4, 4)]

    def forward(self, x):
        hidden = self.linear(x)
        for cell in self.cells:
            hidden = cell(hidden)
        return hidden


meta = MetaOptimizer()
optimizer = torch.optim.Adam(meta.parameters(), lr=1e-3)
for _ in range(5):
    optimizer.zero_grad()
    loss = meta(torch.randn(5, 3)).square().mean()
    loss.backward()
    optimizer.step()
