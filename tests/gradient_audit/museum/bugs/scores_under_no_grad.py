"""D's scores are computed under no_grad(), its loss outside of it.

No public report of it was found."""
# expects: error dead at "with torch.no_grad()"
# expects: mistake no-graph at "d_loss.backward()"
# cure: "        on_real, on_fake" -> "    on_real, on_fake"
# trains: D

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    with torch.no_grad():
        fake = G(torch.randn(6, 3))
        on_real, on_fake = D(torch.randn(6, 4)), D(fake)
    d_loss = bce(on_real, ones) + bce(on_fake, zeros)
    D_optim.zero_grad()
    d_loss.backward()
    D_optim.step()

    g_loss = bce(D(G(torch.randn(6, 3))), ones)
    G_optim.zero_grad()
    g_loss.backward()
    G_optim.step()
