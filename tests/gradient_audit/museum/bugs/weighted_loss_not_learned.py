"""The weights of the losses are parameters of the loss, and the optimizer was given those of the network alone.

https://github.com/Mikoto10032/AutomaticWeightedLoss/issues/3
"""
# expects: error ownerless at "model, weighted = nn"
# cure: "torch.optim.Adam(model.parameters())" -> "torch.optim.Adam([*model.parameters(), *weighted.parameters()])"
# trains: weighted

import torch
from torch import nn


class WeightedLoss(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(count))

    def forward(self, *losses):
        pairs = zip(self.weights, losses, strict=True)
        return sum(0.5 * loss / weight**2 + (1 + weight**2).log() for weight, loss in pairs)


model, weighted = nn.Linear(4, 3), WeightedLoss(2)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    points, mask = torch.randn(4, 2), torch.rand(4, 1)
    predicted = model(torch.randn(4, 4))
    optimizer.zero_grad()
    weighted.zero_grad()
    loss = weighted((predicted[:, :2] - points).square().mean(), (predicted[:, 2:] - mask).abs().mean())
    loss.backward()
    optimizer.step()
