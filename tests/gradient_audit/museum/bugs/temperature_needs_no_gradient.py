"""Adam holds a temperature that was made without requires_grad: nothing ever writes it."""
# expects: error unreached at "optimizer.step()"
# cure: "torch.ones(1)" -> "torch.ones(1, requires_grad=True)"
# trains: temperature

import torch
from torch import nn

torch.manual_seed(0)

model, temperature = nn.Linear(4, 4), torch.ones(1)
optimizer = torch.optim.Adam([*model.parameters(), temperature])

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)) / temperature, torch.randint(4, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
