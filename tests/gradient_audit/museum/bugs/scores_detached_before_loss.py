"""D's scores are detached where they are kept for a plot, and G's loss takes those.

No public report of it was found."""
# expects: error dead at "scores = D(G(torch.randn(6, 3))).detach()"
# expects: mistake detached-fakes at "g_loss.backward()"
# cure: "scores = D(G(torch.randn(6, 3))).detach()" -> "scores = D(G(torch.randn(6, 3)))"
# trains: G

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    d_loss = bce(D(torch.randn(6, 4)), ones) + bce(D(G(torch.randn(6, 3)).detach()), zeros)
    D_optim.zero_grad()
    d_loss.backward()
    D_optim.step()

    scores = D(G(torch.randn(6, 3))).detach()
    g_loss = bce(scores, ones)
    G_optim.zero_grad()
    g_loss.backward()
    G_optim.step()
