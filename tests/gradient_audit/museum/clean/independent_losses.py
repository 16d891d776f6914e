"""DualGAN: the losses of two discriminators that share nothing go backward as one sum."""
# expects: nothing

import torch
from torch import nn

D_A, D_B = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer_D_A, optimizer_D_B = (torch.optim.SGD(network.parameters(), 0.1) for network in (D_A, D_B))

for _ in range(5):
    optimizer_D_A.zero_grad()
    optimizer_D_B.zero_grad()
    loss_A = D_A(torch.randn(4, 4)).mean() - D_A(torch.randn(4, 4)).mean()
    loss_B = D_B(torch.randn(4, 4)).mean() - D_B(torch.randn(4, 4)).mean()
    D_loss = loss_A + loss_B
    D_loss.backward()
    optimizer_D_A.step()
    optimizer_D_B.step()
