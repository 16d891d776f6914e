"""D is frozen for G's loss and never unfrozen: D's next loss, on detached fakes, has no graph.

No public report of it was found."""
# expects: error dead at "D.requires_grad_(False)"
# expects: mistake all-frozen at "d_loss.backward()"
# cure: "    d_loss =" -> "    D.requires_grad_(True)\n    d_loss ="
# trains: D

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    real, fake = torch.randn(6, 4), G(torch.randn(6, 3))
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    D_optim.zero_grad()
    d_loss.backward()
    D_optim.step()

    D.requires_grad_(False)
    g_loss = bce(D(fake), ones)
    G_optim.zero_grad()
    g_loss.backward()
    G_optim.step()
