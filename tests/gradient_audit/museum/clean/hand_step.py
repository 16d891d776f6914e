"""Weights changed by hand, without an optimizer: the audit ends all the same."""
# expects: nothing
# networks: model

import torch
from torch import nn

model = nn.Linear(4, 3)
for _ in range(3000):
    features, labels = torch.randn(4, 4), torch.randint(3, (4,))
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
raise SystemExit("the audit did not end")
