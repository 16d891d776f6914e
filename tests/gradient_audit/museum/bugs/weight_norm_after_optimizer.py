"""weight_norm() puts new parameters in place of a weight that the optimizer holds already."""
# expects: error ownerless at "nn.utils.parametrizations.weight_norm(model[0])"
# says: Make the optimizer after this line
# cure: "optimizer = torch.optim.Adam(model.parameters())\n" -> ""
# cure: "weight_norm(model[0])" -> "weight_norm(model[0])\noptimizer = torch.optim.Adam(model.parameters())"

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
optimizer = torch.optim.Adam(model.parameters())
nn.utils.parametrizations.weight_norm(model[0])

for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()
