"""An average of the weights, kept by an optimizer of its own; its copies need no gradient."""
# expects: nothing

import torch
from torch import nn

torch.manual_seed(0)


class Average(torch.optim.Optimizer):
    def __init__(self, followed, decay=0.9):
        self.followed = list(followed)
        super().__init__([p.detach().clone() for p in self.followed], {"decay": decay})

    @torch.no_grad()
    def step(self):
        for average, new in zip(self.param_groups[0]["params"], self.followed, strict=True):
            average.lerp_(new, 1 - self.defaults["decay"])


model = nn.Linear(4, 4)
optimizer, average = torch.optim.Adam(model.parameters()), Average(model.parameters())

for _ in range(20):
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.step()
