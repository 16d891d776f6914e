"""G's loss counts the fakes that D takes for real ones: a count has no derivative.

No public report of it was found."""
# expects: error dead at "fooled = D(G(torch.randn(6, 3))) > 0"
# expects: mistake step-function at "g_loss.backward()"
# cure: "fooled = D(G(torch.randn(6, 3))) > 0" -> "scores = D(G(torch.randn(6, 3)))"
# cure: "1 - fooled.float().mean()" -> "bce(scores, ones)"
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

    fooled = D(G(torch.randn(6, 3))) > 0
    g_loss = 1 - fooled.float().mean()
    G_optim.zero_grad()
    g_loss.backward()
    G_optim.step()
