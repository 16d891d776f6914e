"""The gradients of torch.func.grad are put into .grad once, and two steps are made on them."""
# expects: error stale at "optimizer.step()  # again"
# cure: "    optimizer.step()  # again" -> ""

import torch
from torch import nn
from torch.func import functional_call, grad

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    samples = torch.randn(6, 4)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    gradients = grad(lambda weights, x: functional_call(model, weights, (x,)).square().mean())(weights, samples)
    for name, p in model.named_parameters():
        p.grad = gradients[name]
    optimizer.step()
    optimizer.step()  # again
