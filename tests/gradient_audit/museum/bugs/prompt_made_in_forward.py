"""A learnt prompt is made in forward(): a new one in each pass, which no optimizer holds.

No public report of it was found.
"""
# expects: question ownerless at "prompt = nn.Parameter"
# cure: "        prompt = nn.Parameter(torch.randn(4) * 0.1)\n" -> ""
# cure: "self.body(x + prompt)" -> "self.body(x + self.prompt)"
# cure: "        self.body = " -> "        self.prompt = nn.Parameter(torch.randn(4) * 0.1)\n        self.body = "
# trains: net

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, x):
        prompt = nn.Parameter(torch.randn(4) * 0.1)
        return self.body(x + prompt)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
