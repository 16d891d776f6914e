"""A hinge that holds and a weight of 0 give gradients of zero, which are clipped, and cleared to zeros: a question."""
# expects: question unreached at "optimizer.step()"
# says: | 3x    | used

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    optimizer.zero_grad(set_to_none=False)
    nn.functional.relu(model(torch.ones(1, 2)) - 100).sum().backward()
    model(torch.ones(1, 2)).mul(0).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
