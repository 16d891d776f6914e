"""The penalty compares gradients that were computed without create_graph: it is a number, and moves nothing.

https://github.com/facebookresearch/DomainBed/issues/50
"""
# expects: error dead at "mean = torch.autograd.grad(s"
# cure: "(loss, weights, retain_graph=True)" -> "(loss, weights, create_graph=True)"
# cure: "/ 2, weights, retain_graph=True" -> "/ 2, weights, create_graph=True"
# mistake: penalty-without-graph

import torch
from torch import nn

network = nn.Linear(4, 3)
optimizer = torch.optim.Adam(network.parameters())

for _ in range(5):
    losses = [nn.functional.cross_entropy(network(torch.randn(4, 4)), torch.randint(3, (4,))) for _ in range(2)]
    weights = list(network.parameters())
    gradients = [torch.autograd.grad(loss, weights, retain_graph=True) for loss in losses]
    mean = torch.autograd.grad(sum(losses) / 2, weights, retain_graph=True)
    penalty = sum((one - whole).square().sum() for some in gradients for one, whole in zip(some, mean, strict=True))
    objective = sum(losses) / 2 + 100 * penalty
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
