"""Layers are replaced after the optimizer was made: it holds the old ones, and nobody holds the new ones.

https://github.com/pytorch/pytorch/issues/14467
"""
# expects: error ownerless at "nn.Linear(size, 4)"
# cure: "optimizer = torch.optim.Adam(model.parameters())\n" -> ""
# cure: "model.translate(6)" -> "model.translate(6)\noptimizer = torch.optim.Adam(model.parameters())"
# trains: model
# mistake: optimizer-old-weights

import torch
from torch import nn


class Brackets(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def translate(self, size):
        self.cell, self.head = nn.Linear(size, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.cell(x).tanh())


model = Brackets()
optimizer = torch.optim.Adam(model.parameters())
model.translate(6)
for _ in range(5):
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(5, 6)), torch.randint(2, (5,)))
    loss.backward()
    optimizer.step()
