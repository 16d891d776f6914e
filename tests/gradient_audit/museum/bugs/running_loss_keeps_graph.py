"""D's loss is added to a running mean, which keeps the graphs of the steps before.

No public report of it was found."""
# expects: error freed at "running = 0.9 * running + 0.1 * d_loss"
# expects: mistake loss-kept-with-graph at "running.backward()"
# cure: "0.9 * running" -> "0.9 * running.detach()"

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)
running = torch.zeros(())

for _ in range(5):
    d_loss = bce(D(torch.randn(6, 4)), ones) + bce(D(G(torch.randn(6, 3)).detach()), zeros)
    running = 0.9 * running + 0.1 * d_loss
    D_optim.zero_grad()
    running.backward()
    D_optim.step()
