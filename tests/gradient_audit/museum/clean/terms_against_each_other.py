"""A term pulls against another, as a reward against its cost, and one has the weight 0 in this run."""
# expects: nothing
# says: | used 67% against
# says: | used 33% against
# says: | used 0%

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    output = model(torch.ones(1, 1))
    loss = output.sum() - 0.5 * output.sum() + 0 * output.exp().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
