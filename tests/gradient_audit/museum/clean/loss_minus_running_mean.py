"""A loss minus its own running mean: another value, and the same gradient."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())
running_mean = torch.zeros(())

for _ in range(20):
    x, wanted = torch.randn(5, 4), torch.randn(5, 4)
    loss = nn.functional.mse_loss(model(x), wanted)
    running_mean = 0.9 * running_mean + 0.1 * loss.detach()
    centred = loss - running_mean
    optimizer.zero_grad()
    centred.backward()
    optimizer.step()
