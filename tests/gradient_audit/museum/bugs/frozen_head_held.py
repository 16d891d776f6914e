"""The head was frozen for a first stage and never unfrozen; its optimizer holds it."""
# expects: question held at "optimizer.step()"

import torch
from torch import nn

body, head = nn.Linear(4, 3), nn.Linear(3, 2)
head.requires_grad_(False)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()])

for _ in range(5):
    loss = nn.functional.cross_entropy(head(body(torch.randn(4, 4))), torch.randint(2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
