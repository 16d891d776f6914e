"""SGD with momentum is made anew in every epoch, with a smaller rate: the momentum is lost each time."""
# expects: question renewed at "optimizer = torch.optim.SGD("

import torch
from torch import nn

model = nn.Linear(4, 4)

for epoch in range(10):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * 0.9**epoch, momentum=0.9)
    for _ in range(2):
        loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
