"""The gradients of two losses are projected as one vector, and assigned in parts, to layers of the same shape."""
# expects: nothing

import torch
from torch import nn

network = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
parameters = [*network.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(5):
    inputs = torch.randn(16, 6)
    outputs = network(inputs)
    losses = [(outputs - target).square().mean() for target in (inputs, inputs.flip(1))]
    first, second = (torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses)
    first, second = (torch.cat([gradient.flatten() for gradient in gradients]) for gradients in (first, second))
    vector = first - min(first @ second, torch.tensor(0.0)) / second.square().sum() * second
    parts = vector.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)
    optimizer.step()
