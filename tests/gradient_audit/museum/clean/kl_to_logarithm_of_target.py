"""kl_div() with log_target=True subtracts the target, which the same network computed before; that is no term."""
# expects: nothing

import torch
from torch import nn

policy, value = nn.Linear(6, 3), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()])

for _ in range(6):
    x = torch.randn(32, 6)
    with torch.no_grad():
        old = policy(x).log_softmax(1)
    for _ in range(2):
        new = policy(x).log_softmax(1)
        distance = nn.functional.kl_div(new, old, log_target=True, reduction="batchmean")
        loss = 0.5 * (value(x).squeeze(1) - x.sum(1)).square().mean() + distance - 0.1 * new[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
