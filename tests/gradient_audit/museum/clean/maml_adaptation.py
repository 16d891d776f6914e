"""MAML: one function adapts the weights to a task, for the loss that trains, and for the error that is printed."""
# expects: nothing

import torch
from torch import nn
from torch.func import functional_call

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())
weights = dict(model.named_parameters())


def error_after_adaptation(shift):
    fast = weights
    for _ in range(2):
        x = torch.randn(5, 4)
        support = nn.functional.mse_loss(functional_call(model, fast, (x,)), x + shift)
        slopes = torch.autograd.grad(support, list(fast.values()), create_graph=True)
        fast = {name: w - 0.1 * slope for (name, w), slope in zip(fast.items(), slopes, strict=True)}
    x = torch.randn(5, 4)
    return nn.functional.mse_loss(functional_call(model, fast, (x,)), x + shift)


for _ in range(20):
    optimizer.zero_grad()
    for shift in (0.5, -0.5):
        error_after_adaptation(shift).backward()
    optimizer.step()
    print(f"held out {error_after_adaptation(2.0).item():.3f}")
