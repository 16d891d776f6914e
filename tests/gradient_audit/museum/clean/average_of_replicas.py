"""Three copies of a network each compute a gradient, and the optimizer steps on their average."""
# expects: nothing

import copy

import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
replicas = [copy.deepcopy(net) for _ in range(3)]
opt = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(10):
    for r in replicas:
        r.load_state_dict(net.state_dict())
        r.zero_grad()
        r(torch.randn(8, 4)).square().mean().backward()
    opt.zero_grad()
    for p, *others in zip(net.parameters(), *[r.parameters() for r in replicas], strict=True):
        p.grad = torch.stack([o.grad for o in others]).mean(0)
    opt.step()
