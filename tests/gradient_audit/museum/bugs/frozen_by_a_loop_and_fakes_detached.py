"""D is frozen by a loop over its parameters, for G's loss, and the fakes of that loss are detached.

No public report of it was found."""
# expects: error dead at "scores = D(fake)"
# expects: mistake all-frozen at "g_loss.backward()"
# cure: "(torch.randn(6, 3)).detach()" -> "(torch.randn(6, 3))"
# cure: "D(fake), zeros" -> "D(fake.detach()), zeros"
# trains: G

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    real, fake = torch.randn(6, 4), G(torch.randn(6, 3)).detach()
    for parameter in D.parameters():
        parameter.requires_grad = True
    d_loss = bce(D(real), ones) + bce(D(fake), zeros)
    D_optim.zero_grad()
    d_loss.backward()
    D_optim.step()

    for parameter in D.parameters():
        parameter.requires_grad = False
    scores = D(fake)
    g_loss = bce(scores, ones)
    G_optim.zero_grad()
    g_loss.backward()
    G_optim.step()
