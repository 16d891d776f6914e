"""MoCo's encoder of keys is a part of the model, so the optimizer holds it; it has no gradient, and is an average."""
# expects: question unreached at "optimizer.step()"

import copy

import torch
from torch import nn


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
        self.key = copy.deepcopy(self.query)

    @torch.no_grad()
    def follow(self):
        for key, query in zip(self.key.parameters(), self.query.parameters(), strict=True):
            key.data = key.data * 0.99 + query.data * 0.01

    def forward(self, x, other):
        query = nn.functional.normalize(self.query(x), dim=1)
        with torch.no_grad():
            self.follow()
            key = nn.functional.normalize(self.key(other), dim=1)
        return query @ key.T / 0.1


model = MoCo()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for _ in range(6):
    x = torch.randn(8, 6)
    logits = model(x + 0.1 * torch.randn(8, 6), x + 0.1 * torch.randn(8, 6))
    loss = nn.functional.cross_entropy(logits, torch.arange(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
