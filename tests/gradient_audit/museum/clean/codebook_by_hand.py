"""An optimizer for one network, and steps by hand for the other one, which has a loss of its own."""
# expects: nothing

import torch
from torch import nn

model, codes = nn.Linear(4, 2), nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    features = model(torch.randn(8, 4))
    codes.zero_grad()
    codes(features.detach()).square().mean().backward()
    with torch.no_grad():
        for parameter in codes.parameters():
            parameter -= 0.1 * parameter.grad
    optimizer.zero_grad()
    features.square().mean().backward()
    optimizer.step()
