"""A step is due after four batches, and the count of these begins anew in each epoch, which has two: none is ever due.

No public report of it was found.
"""
# expects: error idle at "loss.backward()"
# says: Not reached: "optimizer.step()"
# cure: "if count % 4 == 0" -> "if count % 2 == 0"
# trains: network

import torch
from torch import nn

network = nn.Linear(6, 1)
optimizer = torch.optim.SGD(network.parameters(), 0.01)

for _ in range(10):
    for count, batch in enumerate(torch.randn(2, 16, 6), 1):
        loss = network(batch).square().mean() / 4
        loss.backward()
        if count % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
