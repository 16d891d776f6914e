"""A bare nn.Parameter is trained in front of a frozen network, and its gradient is clipped."""
# expects: nothing
# networks: prompt

import torch
from torch import nn

network = nn.Linear(4, 2).requires_grad_(False)
prompt = nn.Parameter(torch.zeros(4))
optimizer = torch.optim.Adam([prompt])

for _ in range(6):
    loss = network(torch.randn(8, 4) + prompt).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([prompt], 1.0)
    optimizer.step()
