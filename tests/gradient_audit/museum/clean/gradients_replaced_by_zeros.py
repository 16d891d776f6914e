"""Gradients are cleared by new tensors of zeros after each step, as Pyro's SVI does.

https://github.com/pyro-ppl/pyro/blob/dev/pyro/infer/util.py
"""
# expects: nothing
# networks: model

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()
    for index, parameter in enumerate(model.parameters()):
        parameter.grad = parameter.grad * 0 if index % 2 else torch.zeros_like(parameter.grad)
