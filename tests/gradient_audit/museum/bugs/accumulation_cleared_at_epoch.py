"""Four batches add up for a step, and an epoch has six: the first line of the next clears what the last two gave."""
# expects: question wasted at "    optimizer.zero_grad()  # anew"
# cure: "        if (i + 1) % 4 == 0:" -> "        if (i + 1) % 4 == 0 or i + 1 == len(batches):"
# cure: "    optimizer.zero_grad()  # anew\n" -> ""

import torch
from torch import nn

network = nn.Linear(6, 1)
optimizer = torch.optim.SGD(network.parameters(), 0.01)
batches = [torch.randn(16, 6) for _ in range(6)]

for _ in range(4):
    optimizer.zero_grad()  # anew
    for i, x in enumerate(batches):
        (network(x).square().mean() / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
