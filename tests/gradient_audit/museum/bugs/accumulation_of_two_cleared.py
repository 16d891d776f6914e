"""zero_grad() is called before each of two micro-batches, so that half of every batch is lost."""
# expects: question wasted at "        optimizer.zero_grad("
# cure: "        optimizer.zero_grad()\n        loss" -> "        loss"
# cure: "    optimizer.step()" -> "    optimizer.step()\n    optimizer.zero_grad()"

import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(6):
    for x in torch.randn(2, 8, 4):
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean() / 2
        loss.backward()
    optimizer.step()
