"""Both losses are computed from one pass through D, and D's pass frees the graph that G's needs.

No public report of it was found."""
# expects: error freed at "d_loss.backward()"
# expects: mistake second-backward at "g_loss.backward()"
# cure: "    on_real" -> "    fake = G(torch.randn(6, 3))\n    on_real"
# cure: "D(G(torch.randn(6, 3)))" -> "D(fake.detach())"
# cure: "bce(on_fake, ones)" -> "bce(D(fake), ones)"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(G.parameters()))"

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    on_real, on_fake = D(torch.randn(6, 4)), D(G(torch.randn(6, 3)))
    d_loss = bce(on_real, ones) + bce(on_fake, zeros)
    g_loss = bce(on_fake, ones)
    D_optim.zero_grad()
    d_loss.backward()
    G_optim.zero_grad()
    g_loss.backward()
    D_optim.step()
    G_optim.step()
