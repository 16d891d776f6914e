"""Gradients by autograd.grad, combined and assigned to .grad, as in MAML, PCGrad and consensus optimisation."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
parameters = list(model.parameters())

for _ in range(5):
    first, second = model(torch.randn(4, 4)).square().mean(0)
    of_first = torch.autograd.grad(first, parameters, retain_graph=True)
    of_second = torch.autograd.grad(second, parameters)
    for parameter, one, other in zip(parameters, of_first, of_second, strict=True):
        parameter.grad = one + other
    optimizer.step()
