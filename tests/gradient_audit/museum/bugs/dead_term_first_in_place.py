"""A loss is summed in a loop, in place, and the term that comes first is a number for autograd.

No public report of it was found.
"""
# expects: question dead at "return network(x).abs().mean"
# says: a term of the sum from "return network(x).abs()"
# cure: ".abs().mean().item()" -> ".abs().mean()"
# trains: network

import torch
from torch import nn

network = nn.Linear(6, 2)
optimizer = torch.optim.Adam(network.parameters())


def size(x):
    return network(x).abs().mean().item()


def distance(x):
    return (network(x) - 1).square().mean()


for _ in range(5):
    x, loss = torch.randn(16, 6), torch.zeros(())
    for term in (size, distance):
        loss += term(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
