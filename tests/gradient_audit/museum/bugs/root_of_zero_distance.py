"""The distance of each sample to all of the batch, itself among them: the root of zero has an infinite slope."""
# expects: error nan at "distances = "
# mistake: nan-gradient
# cure: ".sum(dim=2).sqrt()" -> ".sum(dim=2).add(1e-12).sqrt()"

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
optimizer = torch.optim.Adam(encoder.parameters())

for _ in range(5):
    codes = encoder(torch.randn(5, 4))
    distances = (codes[:, None] - codes[None]).square().sum(dim=2).sqrt()
    loss = (1 - distances).relu().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
