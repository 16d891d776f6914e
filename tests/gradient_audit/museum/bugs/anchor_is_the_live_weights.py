"""The weights are held near an anchor that is the list of parameters itself, so that the distance is always 0."""
# expects: question dead at "0.1 * (now - then)"
# cure: "list(network.parameters())" -> "[parameter.detach().clone() for parameter in network.parameters()]"
# trains: network

import torch
from torch import nn

network = nn.Linear(6, 1)
anchor = list(network.parameters())
optimizer = torch.optim.SGD(network.parameters(), 0.01)

for _ in range(5):
    loss = network(torch.randn(16, 6)).square().mean()
    for now, then in zip(network.parameters(), anchor, strict=True):
        loss = loss + 0.1 * (now - then).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
