"""`zero_grad()` runs before each of two micro-batches that are to be added up; the norm of what is left is logged."""
# expects: waste wasted at "network(data).square().mean().backward()"
# cure: "        optimizer.zero_grad()\n" -> ""
# cure: "    optimizer.step()" -> "    optimizer.step()\n    optimizer.zero_grad()"

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(network.parameters())
for _ in range(6):
    for data in torch.randn(8, 4).split(4):
        optimizer.zero_grad()
        network(data).square().mean().backward()
    print(torch.cat([weight.grad.flatten() for weight in network.parameters()]).norm().item())
    optimizer.step()
