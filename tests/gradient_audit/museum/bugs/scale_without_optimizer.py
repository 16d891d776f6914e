"""A parameter beside the network scales its answer, gets gradients, and is held by no optimizer.

No public report of it was found.
"""
# expects: question ownerless at "scale = nn.Parameter"
# cure: "SGD(net.parameters(), 0.1)" -> "SGD([*net.parameters(), scale], 0.1)"
# trains: net, scale

import torch
from torch import nn

net = nn.Linear(4, 2)
scale = nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    loss = (scale * net(torch.randn(8, 4))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
