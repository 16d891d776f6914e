"""The loss of each domain overwrites that of the one before, so only the last one trains."""
# expects: question unused at "loss = cross_entropy"
# cure: "        loss = cross" -> "        loss = loss + cross"
# trains: network

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(network.parameters(), 0.1)
for _ in range(8):
    loss = torch.zeros(())
    for shift in (0, 3):
        x, labels = torch.randn(16, 10) + shift, torch.randint(3, (16,))
        loss = cross_entropy(network(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
