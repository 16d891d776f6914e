"""LBFGS calls its closure twenty times a step."""
# expects: nothing

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
features, labels = torch.randn(16, 4), torch.randn(16, 1)

for _ in range(5):

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features), labels)
        loss.backward()
        return loss

    optimizer.step(closure)
