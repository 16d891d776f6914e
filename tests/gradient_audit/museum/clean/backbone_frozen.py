"""A frozen backbone under a head that is trained: as people fine-tune."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
for parameter in model.parameters():
    parameter.requires_grad = False
model[2] = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model[2].parameters())

for _ in range(5):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
