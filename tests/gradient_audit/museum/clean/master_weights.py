"""The optimizer holds 32-bit copies of the weights; gradients and weights are copied through `.data`."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).bfloat16()
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
opt = torch.optim.Adam(master, 0.01)
for _ in range(10):
    model.zero_grad()
    loss = model(torch.randn(8, 4).bfloat16()).float().square().mean()
    loss.backward()
    for m, p in zip(master, model.parameters(), strict=True):
        if m.grad is None:
            m.grad = torch.empty_like(m)
        m.grad.data.copy_(p.grad.data)
    torch.nn.utils.clip_grad_norm_(master, 1.0)
    opt.step()
    for m, p in zip(master, model.parameters(), strict=True):
        p.data.copy_(m.data)
