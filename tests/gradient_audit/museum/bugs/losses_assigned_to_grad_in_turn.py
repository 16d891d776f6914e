"""The gradient of each loss is assigned to `.grad`, so that only the last loss of a turn moves the trunk."""
# expects: waste wasted at "gradients = torch.autograd.grad(loss"
# cure: "parameter.grad = gradient" -> "parameter.grad = gradient + (0 if parameter.grad is None else parameter.grad)"

import torch
from torch import nn

trunk, heads = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 1)])
parameters = [*trunk.parameters(), *heads.parameters()]
optimizer = torch.optim.Adam(parameters)
for _ in range(5):
    features = trunk(torch.randn(16, 6))
    optimizer.zero_grad()
    for head in heads:
        loss = head(features).square().mean()
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter.grad = gradient
    optimizer.step()
