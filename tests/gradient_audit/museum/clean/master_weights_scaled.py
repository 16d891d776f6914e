"""The optimizer holds 32-bit copies of the weights; gradients are copied to them, then divided by a loss scale."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).bfloat16()
masters = [weight.detach().clone().float().requires_grad_() for weight in model.parameters()]
optimizer = torch.optim.SGD(masters, 0.1)
for _ in range(6):
    model.zero_grad()
    loss = model(torch.randn(8, 4).bfloat16()).float().square().mean()
    (loss * 128).backward()
    for master, weight in zip(masters, model.parameters(), strict=True):
        if master.grad is None:
            master.grad = torch.empty_like(master)
        master.grad.copy_(weight.grad)
        master.grad.div_(128)
    optimizer.step()
    for master, weight in zip(masters, model.parameters(), strict=True):
        weight.data.copy_(master.data)
