"""The second optimizer holds both networks, whose loss was to train both, and detach() keeps it from the first.

A form that people write, to make "trying to backward through the graph a second time" go away.
"""
# expects: question shared at "optimizer_fine.step()"
# mistake: detached-fakes
# cure: "optimizer_coarse = torch.optim.Adam(coarse.parameters())\n" -> ""
# cure: "    optimizer_coarse.zero_grad()\n" -> ""
# cure: "    nn.functional.mse_loss(first, sharp).backward()" -> "    loss = nn.functional.mse_loss(first, sharp)"
# cure: "    optimizer_coarse.step()\n" -> ""
# cure: "nn.functional.l1_loss(fine(first.detach()), sharp)" -> "(loss + nn.functional.l1_loss(fine(first), sharp))"
# trains: coarse, fine

import torch
from torch import nn

coarse, fine = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
optimizer_coarse = torch.optim.Adam(coarse.parameters())
optimizer_fine = torch.optim.Adam([*coarse.parameters(), *fine.parameters()])

for _ in range(5):
    blurred, sharp = torch.randn(5, 4), torch.randn(5, 4)
    first = coarse(blurred)
    optimizer_coarse.zero_grad()
    nn.functional.mse_loss(first, sharp).backward()
    optimizer_coarse.step()

    optimizer_fine.zero_grad()
    nn.functional.l1_loss(fine(first.detach()), sharp).backward()
    optimizer_fine.step()
