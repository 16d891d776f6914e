"""A term of the loss is a constant for autograd: a FloatTensor is made of its number.

No public report of it was found.
"""
# expects: question dead at "extra = torch.FloatTensor([p"
# says: a term of the sum from "extra = "
# cure: "torch.FloatTensor([parts[0].item()]).squeeze()" -> "torch.stack(parts).mean()"
# trains: net

import torch
from torch import nn

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    y = net(x)
    parts = [y.abs().mean(), y.square().mean()]
    extra = torch.FloatTensor([parts[0].item()]).squeeze()
    loss = (y - x).square().mean() + 0.1 * extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
