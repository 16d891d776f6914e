"""The sum of the losses so far goes backward after each part of a batch, so the first part counts four times."""
# expects: question doubled at "total.backward(retain_graph=True)"
# cure: "        total.backward(retain_graph=True)" -> ""
# cure: "    optimizer.step()" -> "    total.backward()\n    optimizer.step()"
# trains: network

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(network.parameters(), 0.1)
for _ in range(8):
    total = 0.0
    optimizer.zero_grad()
    for _ in range(4):
        x, labels = torch.randn(16, 10), torch.randint(3, (16,))
        total = total + cross_entropy(network(x), labels) / 4
        total.backward(retain_graph=True)
    optimizer.step()
