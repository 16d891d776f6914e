"""Reptile: plain SGD is made anew for each task; without momentum it has no state to lose."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 4)

for _ in range(20):
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shift = torch.randn(4)
    for _ in range(2):
        x = torch.randn(5, 4)
        loss = nn.functional.mse_loss(model(x), x + shift)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for parameter, old in zip(model.parameters(), before, strict=True):
            parameter.copy_(torch.lerp(old, parameter, 0.1))
