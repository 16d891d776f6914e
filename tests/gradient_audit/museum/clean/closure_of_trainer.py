"""A closure given to every step, as Lightning's automatic optimisation does."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    features, labels = torch.randn(4, 4), torch.randn(4, 1)

    def closure():
        loss = nn.functional.mse_loss(model(features), labels) + 0.1 * model.weight.square().sum()
        optimizer.zero_grad()
        loss.backward()
        return loss

    optimizer.step(closure)
