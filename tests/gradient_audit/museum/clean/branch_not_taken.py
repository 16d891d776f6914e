"""From the fifth epoch on there is a second loss with a pass of its own, which three steps do not reach."""
# expects: nothing
# says: Not reached: "pull.backward()"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.Adam(model.parameters())

for epoch in range(8):
    for _ in range(4):
        logits = model(torch.randn(5, 4))
        loss = nn.functional.cross_entropy(logits, torch.randint(3, (5,)))
        optimizer.zero_grad()
        loss.backward(retain_graph=epoch >= 5)
        if epoch >= 5:
            pull = 0.01 * logits.square().mean()
            pull.backward()
        optimizer.step()
