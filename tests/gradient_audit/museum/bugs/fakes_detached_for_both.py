"""The fakes are detached where they are made, for both losses: G is never trained, and one line says why."""
# expects: error unreached at "fake = G(torch.randn(16, 4)).detach()"
# cure: "fake = G(torch.randn(16, 4)).detach()" -> "fake = G(torch.randn(16, 4))"
# cure: "loss(D(fake), zeros)" -> "loss(D(fake.detach()), zeros)"
# trains: G, D
# mistake: detached-fakes

import torch
from torch import nn

G, D = nn.Linear(4, 3), nn.Linear(3, 1)
optimizer_g, optimizer_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
loss = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)

for _ in range(5):
    fake = G(torch.randn(16, 4)).detach()
    optimizer_d.zero_grad()
    (loss(D(torch.randn(16, 3)), ones) + loss(D(fake), zeros)).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss(D(fake), ones).backward()
    optimizer_g.step()
