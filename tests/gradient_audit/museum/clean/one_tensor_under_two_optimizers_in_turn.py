"""A code is fitted to images by one optimizer, then refined by another: stages, and the same loss."""
# expects: nothing

import torch
from torch import nn

decoder = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4)).requires_grad_(False)
code, wanted = torch.zeros(2, 3, requires_grad=True), torch.randn(2, 4)
coarse, fine = torch.optim.Adam([code], lr=0.1), torch.optim.SGD([code], lr=0.01)

for optimizer in (coarse, fine):
    for _ in range(4):
        loss = nn.functional.mse_loss(decoder(code), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
