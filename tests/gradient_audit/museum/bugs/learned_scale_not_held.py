"""A loss with a learned scale, which the optimizer was made without: one finding, though its term is dead, too.

No public report of it was found."""
# expects: error ownerless at "model = Model()"
# cure: "Adam([model.scale])" -> "Adam(model.parameters())"

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.log_scale = nn.Parameter(torch.ones(())), nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return x * self.scale


model = Model()
optimizer = torch.optim.Adam([model.scale])
for _ in range(5):
    error = (model(torch.randn(8, 4)) - 2).square().mean()
    loss = error / model.log_scale.exp().detach() + model.log_scale
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
