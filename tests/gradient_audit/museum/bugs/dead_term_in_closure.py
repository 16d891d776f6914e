"""Inside a closure, a term of the loss is cut off by detach()."""
# expects: question dead at "loss = nn.functional.mse_los"
# cure: "output.detach().square()" -> "output.square()"

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    features, labels = torch.randn(4, 4), torch.randn(4, 1)

    def closure():
        output = model(features)
        loss = nn.functional.mse_loss(output, labels) + output.detach().square().mean()
        optimizer.zero_grad()
        loss.backward()
        return loss

    optimizer.step(closure)
