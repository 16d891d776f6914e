"""Two heads are in a plain dict: `parameters()` does not find them, and no optimizer gets them.

https://github.com/xiaxin1998/COTREC/issues/15
"""
# expects: error ownerless at "nn.Linear(8, 1) for name"
# networks: model, model.heads['left'], model.heads['right']
# says: make that an `nn.ModuleDict`
# cure: "self.heads = {" -> "self.heads = nn.ModuleDict({"
# cure: ""right")}" -> ""right")})"
# trains: model

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.heads = {name: nn.Linear(8, 1) for name in ("left", "right")}

    def forward(self, x):
        features = self.body(x).relu()
        return [head(features) for head in self.heads.values()]


model = Model()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    left, right = model(torch.randn(16, 6))
    loss = left.square().mean() + (right - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
