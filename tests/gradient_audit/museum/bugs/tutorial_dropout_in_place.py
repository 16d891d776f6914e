"""Dropout writes into the output of LeakyReLU, which LeakyReLU needs for its own gradient.

https://github.com/dreamgonfly/GAN-tutorial/issues/1
"""
# expects: error overwritten at "self.dropout(x)"
# cure: "nn.Dropout(0.3, inplace=True)" -> "nn.Dropout(0.3)"
# mistake: inplace-activation

import torch
from torch import nn


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 1)
        self.dropout = nn.Dropout(0.3, inplace=True)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.first(x), 0.2, inplace=True)
        x = self.dropout(x)
        return torch.sigmoid(self.last(x))


discriminator = Discriminator()
optimizer = torch.optim.Adam(discriminator.parameters())
for _ in range(5):
    optimizer.zero_grad()
    D_loss = nn.functional.binary_cross_entropy(discriminator(torch.randn(4, 4)), torch.ones(4, 1))
    D_loss.backward()
    optimizer.step()
