"""The losses are summed as numbers, and the sum is made a tensor again.

No public report of it was found."""
# expects: error dead at "losses = "
# expects: mistake loss-rebuilt at "d_loss.backward()"
# cure: "ones).item(), bce(D(fake), zeros).item()" -> "ones), bce(D(fake), zeros)"
# cure: "torch.tensor(losses)" -> "torch.stack(losses)"
# trains: D

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    fake = G(torch.randn(6, 3)).detach()
    losses = [bce(D(torch.randn(6, 4)), ones).item(), bce(D(fake), zeros).item()]
    d_loss = torch.tensor(losses).sum()
    D_optim.zero_grad()
    d_loss.backward()
    D_optim.step()
