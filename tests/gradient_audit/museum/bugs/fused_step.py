"""D steps between two passes of one graph, and its fused optimizer hides the step from PyTorch: a wrong gradient.

No public report of it was found."""
# expects: error overwritten at "opt_D.step()"
# cure: "    opt_G.zero" -> "    g_loss = -D(G(torch.randn(6, 5))).mean()\n    opt_G.zero"
# says: so PyTorch gives a wrong gradient and no error
# says: - tensor      `D.2.weight` and `D.0.weight`
# says: - written by  `"opt_D.step()"
# mistake: fused-step

import torch
from torch import nn

G = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_G = torch.optim.Adam(G.parameters(), lr=1e-3, fused=True)
opt_D = torch.optim.Adam(D.parameters(), lr=1e-3, fused=True)

for _ in range(5):
    real, fake = D(torch.randn(6, 3)), D(G(torch.randn(6, 5)))
    d_loss, g_loss = fake.mean() - real.mean(), -fake.mean()
    opt_D.zero_grad()
    d_loss.backward(retain_graph=True, inputs=list(D.parameters()))
    opt_D.step()

    opt_G.zero_grad()
    g_loss.backward(inputs=list(G.parameters()))
    opt_G.step()
