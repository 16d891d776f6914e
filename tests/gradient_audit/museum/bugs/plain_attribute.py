"""A leaf that is a plain attribute, no nn.Parameter: it gets gradients, and no optimizer ever moves it."""
# expects: error ownerless at "loss.backward()"
# cure: "torch.zeros(1, requires_grad=True)" -> "nn.Parameter(torch.zeros(1))"

import torch
from torch import nn


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.shift = torch.zeros(1, requires_grad=True)

    def forward(self, features):
        return self.linear(features) + self.shift


model = Shifted()
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = (model(torch.randn(4, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
