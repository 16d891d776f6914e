"""SAM whose first gradient is not cleared: the step is on the sum of both."""
# expects: question reused at "backward()  # of the climbed weights"
# cure: "            parameter.add_(climb)\n" -> "            parameter.add_(climb)\n    optimizer.zero_grad()\n"

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    features, labels = torch.randn(4, 4), torch.randn(4, 1)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(features), labels).backward()
    climbs = [0.05 * parameter.grad / parameter.grad.norm() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter, climb in zip(model.parameters(), climbs, strict=True):
            parameter.add_(climb)
    nn.functional.mse_loss(model(features), labels).backward()  # of the climbed weights
    with torch.no_grad():
        for parameter, climb in zip(model.parameters(), climbs, strict=True):
            parameter.sub_(climb)
    optimizer.step()
