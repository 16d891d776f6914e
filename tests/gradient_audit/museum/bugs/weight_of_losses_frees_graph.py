"""The gradient for an adaptive weight of G's two losses frees the graph that their sum needs.

No public report of it was found."""
# expects: error freed at "slope = torch.autograd.grad("
# expects: mistake second-backward at "g_loss.backward("
# cure: "G[0].weight)" -> "G[0].weight, retain_graph=True)"

import torch
from torch import nn

G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1))
G_optim, D_optim = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    fake, target = G(torch.randn(6, 3)), torch.randn(6, 4)
    distance, judged = (fake - target).square().mean(), bce(D(fake), ones)
    slope = torch.autograd.grad(distance, G[0].weight)[0]
    g_loss = distance + judged / (slope.norm() + 1e-4)
    G_optim.zero_grad()
    g_loss.backward(inputs=list(G.parameters()))
    G_optim.step()
