"""A term of the loss is a constant for autograd: its parts are read by item() and joined by torch.tensor().

No public report of it was found.
"""
# expects: question dead at "extra = torch.tensor([part.i"
# says: a term of the sum from "extra = "
# cure: "torch.tensor([part.item() for part in parts]).mean()" -> "torch.stack(parts).mean()"
# trains: net

import torch
from torch import nn

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    y = net(x)
    parts = [y.abs().mean(), y.square().mean()]
    extra = torch.tensor([part.item() for part in parts]).mean()
    loss = (y - x).square().mean() + 0.1 * extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
