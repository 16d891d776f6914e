"""Three batches are to add up for a step, and zero_grad() comes before the last backward(): only that one counts."""
# expects: question wasted at "        optimizer.zero_grad()"
# cure: "    if last:\n        optimizer.zero_grad()\n" -> ""
# cure: "        optimizer.step()" -> "        optimizer.step()\n        optimizer.zero_grad()"

import torch
from torch import nn

network = nn.Linear(6, 1)
optimizer = torch.optim.SGD(network.parameters(), 0.01)

for turn in range(12):
    last = turn % 3 == 2
    loss = network(torch.randn(16, 6)).square().mean() / 3
    if last:
        optimizer.zero_grad()
    loss.backward()
    if last:
        optimizer.step()
