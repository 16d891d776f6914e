"""D steps between its own backward pass and G's, which needs D as it was.

https://github.com/pytorch/pytorch/issues/39141
"""
# expects: error overwritten at "opt_D.step()"
# cure: "    G_loss = torch.mean(torch.log(1 - prob_fake))\n" -> ""
# cure: "    opt_G.zero" -> "    G_loss = torch.mean(torch.log(1 - D(G(torch.randn(6, 5)))))\n    opt_G.zero"
# mistake: step-between-backwards

import torch
from torch import nn

G = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
opt_D = torch.optim.Adam(D.parameters(), lr=1e-4)
opt_G = torch.optim.Adam(G.parameters(), lr=1e-4)

for _ in range(5):
    prob_real = D(torch.rand(6, 3))
    prob_fake = D(G(torch.randn(6, 5)))
    D_loss = -torch.mean(torch.log(prob_real) + torch.log(1 - prob_fake))
    G_loss = torch.mean(torch.log(1 - prob_fake))

    opt_D.zero_grad()
    D_loss.backward(retain_graph=True)
    opt_D.step()

    opt_G.zero_grad()
    G_loss.backward()
    opt_G.step()
