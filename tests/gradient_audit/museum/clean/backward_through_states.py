"""Truncated backpropagation through time by hand: the gradient of each state goes on backward into the step before it.

After https://discuss.pytorch.org/t/implementing-truncated-backpropagation-through-time/15500 (albanD's answer).
"""
# expects: nothing
# networks: cell, head

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.05)
for _ in range(6):
    pairs, after = [], torch.zeros(3, 8)
    for data in torch.randn(2, 3, 4):
        before = after.detach().requires_grad_()
        after = cell(data, before)
        pairs.append((before, after))
    optimizer.zero_grad()
    head(after).square().mean().backward()
    pairs[0][1].backward(pairs[1][0].grad)
    optimizer.step()
