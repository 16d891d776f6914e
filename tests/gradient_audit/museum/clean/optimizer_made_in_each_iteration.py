"""Adam is made anew in every iteration: it never has more than one gradient in its moments."""
# expects: question renewed at "optimizer = torch.optim.Adam("

import torch
from torch import nn

model = nn.Linear(4, 4)

for _ in range(20):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
