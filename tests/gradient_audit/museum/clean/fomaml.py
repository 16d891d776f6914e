"""First-order MAML: the gradient of an adapted copy is that of the network."""
# expects: nothing
# networks: net, learner

import copy

import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
meta = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(5):
    meta.zero_grad()
    for task in range(3):
        learner = copy.deepcopy(net)
        inner = torch.optim.SGD(learner.parameters(), 0.01)
        x = torch.randn(8, 1)
        y = x * task
        for _ in range(3):
            inner.zero_grad()
            (learner(x) - y).square().mean().backward()
            inner.step()
        inner.zero_grad()
        (learner(x) - y).square().mean().backward()
        for p, q in zip(net.parameters(), learner.parameters(), strict=True):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    meta.step()
