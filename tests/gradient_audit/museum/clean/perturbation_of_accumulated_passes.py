"""FreeLB: the passes that move a perturbation also train the network, by the sum of their gradients."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    x, labels = torch.randn(6, 4), torch.randint(3, (6,))
    delta = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_()
    optimizer.zero_grad()
    for turn in range(3):
        loss = nn.functional.cross_entropy(model(x + delta), labels) / 3
        loss.backward()
        if turn < 2:
            delta = (delta + 0.1 * delta.grad / delta.grad.norm()).detach().requires_grad_()
    optimizer.step()
