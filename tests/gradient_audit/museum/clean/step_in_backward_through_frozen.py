"""Each parameter has an optimizer that steps in the backward pass, by a hook; the critic it passes is frozen."""
# expects: nothing

import torch
from torch import nn

A = nn.Linear(4, 3)
C = nn.Linear(3, 1).requires_grad_(False)
optimizers = {p: torch.optim.Adam([p]) for p in A.parameters()}


def hook(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in A.parameters():
    p.register_post_accumulate_grad_hook(hook)
for _ in range(6):
    C(A(torch.randn(8, 4))).mean().backward()
