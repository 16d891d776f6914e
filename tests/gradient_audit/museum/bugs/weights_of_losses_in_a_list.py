"""Weights of two losses (Kendall et al., 2018) are tensors in a list: `parameters()` does not find them."""
# expects: error ownerless at "loss.backward()"
# cure: "[torch.zeros(1, requires_grad=True) for _ in range(2)]" -> "nn.ParameterList(torch.zeros(1) for _ in range(2))"

import torch
from torch import nn


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        self.log_variances = [torch.zeros(1, requires_grad=True) for _ in range(2)]

    def forward(self, x):
        features = self.body(x).tanh()
        return self.first(features), self.second(features)


model = TwoTasks()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    x = torch.randn(8, 6)
    losses = [(made - x[:, :1]).square().mean() for made in model(x)]
    loss = sum((torch.exp(-s) * loss + s).sum() for s, loss in zip(model.log_variances, losses, strict=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
