"""Missing labels are NaN and left out of the mean, but behind the square: its derivative is 0 times NaN."""
# expects: error nan at "errors = "
# cure: "labels).square()" -> "labels)[~labels.isnan()].square()"
# cure: "errors[~labels.isnan()]" -> "errors"

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    labels = torch.randn(6, 1)
    labels[::3] = float("nan")
    errors = (model(torch.randn(6, 4)) - labels).square()
    loss = errors[~labels.isnan()].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
