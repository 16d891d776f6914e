"""A loss is rebuilt from numbers and made to require a gradient, which only hides the error.

No public report of it was found.
"""
# expects: error dead at "loss = torch.tensor("
# mistake: loss-made-leaf
# cure: "torch.tensor([mean_square(row).item() for" -> "torch.stack([mean_square(row) for"
# cure: "], requires_grad=True)" -> "])"
# trains: net

import torch
from torch import nn


def mean_square(row):
    return row.square().mean()


net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    y = net(torch.randn(8, 4))
    loss = torch.tensor([mean_square(row).item() for row in y], requires_grad=True).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
