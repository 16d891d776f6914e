"""The parts of a model are called one by one; the optimizer holds the head alone, and the backbone is not frozen."""
# expects: waste unfrozen at "loss.backward()"
# cure: "model.head.parameters()" -> "model.parameters()"
# trains: model

import torch
from torch import nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(4, 4), nn.Linear(4, 4)


model = Split()
optimizer = torch.optim.Adam(model.head.parameters())

for _ in range(20):
    x, labels = torch.randn(5, 4), torch.randint(4, (5,))
    features = model.backbone(x).relu()
    loss = nn.functional.cross_entropy(model.head(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
