"""SVRG (Johnson and Zhang 2013): the gradients of a snapshot correct those of the network that is trained."""
# expects: nothing
# trains: network

import copy

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
network = nn.Linear(4, 2)
snapshot = copy.deepcopy(network)
optimizer = torch.optim.SGD(network.parameters(), 0.05)
x, y = torch.randn(32, 4), torch.randn(32, 2)
for step in range(12):
    if step % 4 == 0:
        snapshot.load_state_dict(network.state_dict())
        snapshot.zero_grad()
        mse_loss(snapshot(x), y).backward()
        full = [p.grad.clone() for p in snapshot.parameters()]
    rows = torch.randint(32, (8,))
    optimizer.zero_grad()
    mse_loss(network(x[rows]), y[rows]).backward()
    snapshot.zero_grad()
    mse_loss(snapshot(x[rows]), y[rows]).backward()
    for p, q, mean in zip(network.parameters(), snapshot.parameters(), full, strict=True):
        p.grad += mean - q.grad
    optimizer.step()
