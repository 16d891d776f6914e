"""G learns through a judge of features that nobody froze: the judge's own gradients are for nothing."""
# expects: waste unfrozen at "loss.backward()"

import torch
from torch import nn

generator, judge = nn.Linear(4, 4), nn.Linear(4, 4).eval()
optimizer = torch.optim.Adam(generator.parameters())

for _ in range(20):
    low, high = torch.randn(5, 4), torch.randn(5, 4)
    with torch.no_grad():
        wanted = judge(high)
    loss = nn.functional.l1_loss(judge(generator(low)), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
