"""Two stages: the second optimizer steps later than the audit watches; whether it will, only the reader can tell."""
# expects: question idle at "loss.backward()"

import torch
from torch import nn

body, head = nn.Linear(4, 3), nn.Linear(3, 1)
optimizer_body = torch.optim.Adam(body.parameters())
optimizer_head = torch.optim.Adam(head.parameters())

for step in range(2000):
    loss = head(body(torch.randn(4, 4))).square().mean()
    optimizer_body.zero_grad()
    optimizer_head.zero_grad()
    loss.backward()
    (optimizer_body if step < 1000 else optimizer_head).step()
