"""A derivative with a graph of a function that has no network: the audit has nothing to say of it, and no row."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    points = torch.randn(8, 3, requires_grad=True)
    (slopes,) = torch.autograd.grad(points.square().sum(), points, create_graph=True)
    loss = (model(points) - slopes.detach().sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward(inputs=list(model.parameters()))
    optimizer.step()
