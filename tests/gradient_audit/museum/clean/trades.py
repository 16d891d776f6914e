"""TRADES: images move by `autograd.grad()` of a divergence to what the model says of others, with a graph."""
# expects: waste graph at "targets = model(images).softmax(1)"

import torch
from torch import nn
from torch.nn import functional as losses

model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    images, labels = torch.rand(8, 8), torch.randint(3, (8,))
    moved = images + 0.001 * torch.randn_like(images)
    for _ in range(3):
        moved.requires_grad_()
        with torch.enable_grad():
            targets = model(images).softmax(1)
            divergence = losses.kl_div(model(moved).log_softmax(1), targets, reduction="sum")
        (gradient,) = torch.autograd.grad(divergence, [moved])
        moved = (moved.detach() + 0.01 * gradient.sign()).clamp(0, 1)
    logits = model(images)
    robust = losses.kl_div(model(moved).log_softmax(1), logits.softmax(1), reduction="batchmean")
    optimizer.zero_grad()
    (losses.cross_entropy(logits, labels) + 6 * robust).backward()
    optimizer.step()
