"""A gradient is masked after the step that used it and before it is cleared: no step sees the mask.

No public report of it was found.
"""
# expects: question clipped at "net.weight.grad.mul_(mask)"
# cure: "    optimizer.step()\n    net.weight.grad.mul_(mask)" -> "    net.weight.grad.mul_(mask)\n    optimizer.step()"
# trains: net

import torch
from torch import nn

net = nn.Linear(6, 4)
mask = (torch.rand(4, 6) > 0.5).float()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    optimizer.zero_grad()
    net(torch.randn(4, 6)).pow(2).mean().backward()
    optimizer.step()
    net.weight.grad.mul_(mask)
