"""The losses of an epoch are added up with their graphs, which all stay in memory until the sum is dropped.

https://pytorch.org/docs/stable/notes/faq.html
"""
# expects: waste kept at "total_loss += loss"
# mistake: loss-kept-with-graph
# cure: "+= loss" -> "+= loss.item()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

total_loss = 0
for _ in range(8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.randint(3, (4,)))
    loss.backward()
    optimizer.step()
    total_loss += loss
print("mean loss", float(total_loss) / 8)
