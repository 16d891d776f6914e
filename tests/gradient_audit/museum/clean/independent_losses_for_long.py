"""Two losses share no network and one `backward()`, six times an iteration: of the last passes no terms are seen."""
# expects: nothing

import torch
from torch import nn

first, second = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer_first = torch.optim.Adam(first.parameters())
optimizer_second = torch.optim.Adam(second.parameters())

for _ in range(5):
    optimizer_first.zero_grad()
    optimizer_second.zero_grad()
    for _ in range(6):
        x = torch.randn(5, 4)
        loss = first(x).square().mean() + second(x).square().mean()
        loss.backward()
    optimizer_first.step()
    optimizer_second.step()
