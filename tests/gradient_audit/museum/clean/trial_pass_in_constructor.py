"""A constructor sends zeros through its first layers, to learn how many features come out."""
# expects: nothing

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten())
        width = self.features(torch.zeros(1, 1, 6)).shape[1]
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.features(x))


model = Network()
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 1, 6)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
