"""Losses are multiplied by a vector of weights, and one of them is a penalty without a graph."""
# expects: error dead at "slope = torch.autograd.grad(scores.sum(), real, retain_graph=True)[0]"
# cure: "retain_graph=True" -> "create_graph=True"

import torch
from torch import nn

critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters())
weights = torch.tensor([1.0, 1.0, 10.0])

for _ in range(5):
    real, fake = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4) + 1
    scores = critic(real)
    slope = torch.autograd.grad(scores.sum(), real, retain_graph=True)[0]
    penalty = (slope.norm(dim=1) - 1).square().mean()
    loss = torch.stack([critic(fake).mean(), -scores.mean(), penalty]) @ weights
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
