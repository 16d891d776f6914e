"""The losses of three scales are kept in a list with their graphs, for the one sum that this iteration trains on."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
history = []

for _ in range(8):
    losses = []
    for scale in (0.5, 1.0, 2.0):
        losses.append(model(scale * torch.randn(4, 4)).square().mean())
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
