"""As A3C has it: a local copy computes the gradients, and the optimizer steps on them in the shared network."""
# expects: nothing
# networks: shared, local

import torch
from torch import nn

shared, local = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(shared.parameters(), 0.01)
for _ in range(10):
    local.load_state_dict(shared.state_dict())
    local.zero_grad()
    loss = local(torch.randn(8, 4)).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(local.parameters(), 1.0)
    for s, p in zip(shared.parameters(), local.parameters(), strict=True):
        s._grad = p.grad
    opt.step()
