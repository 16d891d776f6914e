"""A3C's `zero_grad()` of the shared optimizer no longer clears the gradients of the local copy, which add up.

With `set_to_none=False`, the default before PyTorch 2.0, it did: both were one tensor. The form is that of
https://github.com/ikostrikov/pytorch-a3c/blob/master/train.py
"""
# expects: error stale at "loss.backward()"
# cure: "    opt.step()" -> "    opt.step()\n    local.zero_grad()"
# trains: shared

import torch
from torch import nn

shared, local = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(shared.parameters(), 0.01)
for _ in range(10):
    local.load_state_dict(shared.state_dict())
    loss = local(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    for s, p in zip(shared.parameters(), local.parameters(), strict=True):
        if s.grad is not None:
            break
        s._grad = p.grad
    opt.step()
