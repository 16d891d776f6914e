"""The penalty goes backward by itself, and autograd.grad() has given its slope no graph.

No public report of it was found."""
# expects: error dead at "slope = torch.autograd.grad("
# expects: mistake penalty-without-graph at "penalty.backward()"
# cure: ".sum(), mixed)" -> ".sum(), mixed, create_graph=True)"

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    real, fake = torch.randn(6, 4), G(torch.randn(6, 3))
    D_optim.zero_grad()
    (D(fake.detach()).mean() - D(real).mean()).backward()
    mixed = (real + fake.detach()).div(2).requires_grad_()
    slope = torch.autograd.grad(D(mixed).sum(), mixed)[0]
    penalty = 10 * (slope.norm(dim=1) - 1).square().mean()
    penalty.backward()
    D_optim.step()
