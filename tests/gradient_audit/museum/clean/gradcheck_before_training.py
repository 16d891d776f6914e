"""`gradcheck` tests the gradients of a network, through `.data`, before it is trained: it puts all values back."""
# expects: nothing

import torch
from torch import nn
from torch.optim import SGD

network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
batch = torch.randn(2, 3, dtype=torch.double)
torch.autograd.gradcheck(network, batch.clone().requires_grad_())
torch.autograd.gradgradcheck(torch.sin, batch.clone().requires_grad_())
optimizer = SGD(network.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    network(batch).square().mean().backward()
    optimizer.step()
