"""FedProx, whose anchor is `state_dict()` without a copy: the live weights, so that the penalty is always zero."""
# expects: question dead at "penalty = sum("
# cure: "network.state_dict()" -> "{name: value.clone() for name, value in network.state_dict().items()}"

import torch
from torch import nn

network = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
anchor = network.state_dict()
for _ in range(5):
    inputs, labels = torch.randn(8, 8), torch.randint(3, (8,))
    penalty = sum((parameter - anchor[name]).square().sum() for name, parameter in network.named_parameters())
    loss = nn.functional.cross_entropy(network(inputs), labels) + 0.01 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
