"""Every third batch is skipped after its forward pass, before its backward pass: the graph of that pass is dropped."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

for step in range(20):
    output = model(torch.randn(5, 4))
    if step % 3 == 1:
        continue
    loss = nn.functional.cross_entropy(output, torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
