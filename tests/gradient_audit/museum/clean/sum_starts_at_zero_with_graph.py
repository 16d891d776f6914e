"""A buffer of zero requires a gradient, and losses are added to it, so that their sum always has a graph.

https://github.com/lucidrains/vector-quantize-pytorch/blob/master/vector_quantize_pytorch/vector_quantize_pytorch.py
"""
# expects: nothing
# networks: net

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("zero", torch.tensor(0.0), persistent=False)

    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        y = self.layer(x)
        return y, loss + 0.25 * (y - x).square().mean()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(20):
    y, distance = net(torch.randn(6, 4))
    loss = (y - 1).abs().mean() + distance * 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
