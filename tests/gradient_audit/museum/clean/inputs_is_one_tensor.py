"""`inputs=` is a tensor, not a list, and the network on the way to it was frozen after its forward pass."""
# expects: nothing

import torch
from torch import nn

judge, offset = nn.Linear(4, 1), torch.zeros(4, requires_grad=True)
optimizer = torch.optim.Adam([offset], lr=0.01)
optimizer_judge = torch.optim.Adam(judge.parameters())

for _ in range(5):
    score = judge(torch.randn(5, 4) + offset).mean()
    judge.requires_grad_(False)
    optimizer.zero_grad()
    score.backward(inputs=offset)
    optimizer.step()
    judge.requires_grad_(True)

    error = judge(torch.randn(5, 4)).square().mean()
    optimizer_judge.zero_grad()
    error.backward()
    optimizer_judge.step()
