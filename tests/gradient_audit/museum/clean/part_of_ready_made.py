"""A part of a ready-made network is kept: the rest of it is no network of this script."""
# expects: nothing
# networks: encoder

import torch
from torch import nn


class ReadyMade(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
        self.classifier = nn.Linear(2, 10)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*list(ReadyMade().children())[:-1])
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


encoder = Encoder()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = encoder(torch.randn(2, 1, 6, 6)).square().mean()
    loss.backward()
    optimizer.step()
