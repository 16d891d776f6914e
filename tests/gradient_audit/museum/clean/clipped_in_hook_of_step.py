"""Gradients are clipped in a hook of the optimizer, which runs when its step has begun."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.Adam(model.parameters())
optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(model.parameters(), 0.1) and None)

for _ in range(5):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(3, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
