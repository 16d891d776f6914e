"""An optimizer is made, gradients are added up and printed, and no step is wanted: print() is no operation on them."""
# expects: waste wasted at "loss.backward()"

import torch
from torch import nn
from torch.optim import SGD

network = nn.Linear(6, 1)
optimizer = SGD(network.parameters(), 0.01)

for _ in range(20):
    loss = network(torch.randn(16, 6)).square().mean()
    loss.backward()
for parameter in network.parameters():
    print(parameter.grad)
