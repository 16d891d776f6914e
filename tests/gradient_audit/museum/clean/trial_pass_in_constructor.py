"""A constructor sends zeros through its first layers, to see how many features come out; a library's does likewise."""
# expects: nothing

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "site-packages"))
from gan_library import Wrapper


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten())
        width = self.features(torch.zeros(1, 4)).shape[1]
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.features(x))


model = Wrapper(Network())
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(4, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
