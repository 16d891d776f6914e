"""The losses of four batches are added with their graphs, then comes one backward pass and one step."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

loss = 0
for batch in range(1, 21):
    loss = loss + nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(3, (4,))) / 4
    if batch % 4 == 0:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = 0
