"""A layer is made in forward(): its weights are new in each pass, and no optimizer holds them.

No public report of it was found.
"""
# expects: question ownerless at "extra = nn.Linear(4, 4)"
# networks: net
# cure: "        extra = nn.Linear(4, 4)\n" -> ""
# cure: "extra(x).relu()" -> "self.extra(x).relu()"
# cure: "        self.body = " -> "        self.extra = nn.Linear(4, 4)\n        self.body = "
# trains: net

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, x):
        extra = nn.Linear(4, 4)
        return self.body(extra(x).relu())


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
