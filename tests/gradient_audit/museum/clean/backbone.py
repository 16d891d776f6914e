"""A backbone that nobody froze under a head that is trained: gradients for nothing, and no mistake."""
# expects: waste unfrozen at "loss.backward()"

import torch
from torch import nn

backbone, head = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), nn.Linear(3, 2)
model = nn.Sequential(backbone, head)
optimizer = torch.optim.Adam(head.parameters())

for _ in range(5):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
