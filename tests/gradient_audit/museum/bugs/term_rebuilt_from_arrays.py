"""A term of the loss is a constant for autograd: its parts pass through NumPy.

No public report of it was found.
"""
# expects: question dead at "extra = torch.from_numpy(np."
# says: a term of the sum from "extra = "
# cure: "torch.from_numpy(np.stack([part.detach().numpy() for part in parts])).mean()" -> "torch.stack(parts).mean()"
# trains: net

import numpy as np
import torch
from torch import nn

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    y = net(x)
    parts = [y.abs().mean(), y.square().mean()]
    extra = torch.from_numpy(np.stack([part.detach().numpy() for part in parts])).mean()
    loss = (y - x).square().mean() + 0.1 * extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
