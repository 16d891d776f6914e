"""Samples of the averaged generator are computed with autograd on."""
# expects: waste graph at "samples = average(torch.randn(2, 3))"
# cure: "    samples = average(" -> "    with torch.no_grad():\n        samples = average("
# networks: generator, average

import copy

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
average = copy.deepcopy(generator)
optimizer = torch.optim.Adam(generator.parameters())

for _ in range(5):
    loss = generator(torch.randn(4, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), generator.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
    samples = average(torch.randn(2, 3))
