"""Gradients by name in alphabetical order are assigned in the order of the layers: alike layers exchange them."""
# expects: question misplaced at "losses.mse_loss(network(inputs), inputs).backward()"
# cure: "sorted(network.named_parameters())" -> "network.named_parameters()"

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as losses

network = nn.Sequential(OrderedDict((name, nn.Linear(6, 6, bias=False)) for name in ("second", "first", "last")))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(5):
    inputs = torch.randn(16, 6)
    optimizer.zero_grad()
    losses.mse_loss(network(inputs), inputs).backward()
    gradients = [parameter.grad.clone() for name, parameter in sorted(network.named_parameters())]
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
