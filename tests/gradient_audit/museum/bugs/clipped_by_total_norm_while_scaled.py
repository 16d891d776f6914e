"""Gradients are clipped by `get_total_norm` and `clip_grads_with_norm_` before the scaler divides them by its scale.

It is the mistake of PyTorch's notes on mixed precision, with the functions that came after them:
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
"""
# expects: error scaled at "nn.utils.clip_grads_with_norm_"
# cure: "    norm =" -> "    scaler.unscale_(optimizer)\n    norm ="
# trains: net

import torch
from torch import nn

net = nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(4):
    optimizer.zero_grad()
    scaler.scale(net(torch.randn(4, 6)).pow(2).mean()).backward()
    norm = nn.utils.get_total_norm([p.grad for p in net.parameters()])
    nn.utils.clip_grads_with_norm_(net.parameters(), 1.0, norm)
    scaler.step(optimizer)
    scaler.update()
