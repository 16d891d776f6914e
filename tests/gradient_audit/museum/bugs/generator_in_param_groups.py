"""A generator is put into `param_groups`: the next zero_grad() uses it up, and no step finds a parameter any more.

No public report of it was found.
"""
# expects: error ownerless at "loss.backward()"
# cure: "= net.parameters()" -> "= list(net.parameters())"
# trains: net

import torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters(), 0.1)
for step in range(10):
    if step == 1:
        optimizer.param_groups[0]["params"] = net.parameters()
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
