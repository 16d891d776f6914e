"""Two views predict each other, and the mean over samples is taken of one of the two losses: the other is dropped."""
# expects: question unused at "loss_two = regression("
# cure: "loss_one.mean()" -> "(loss_one + loss_two).mean()"
# trains: online

import torch
from torch import nn
from torch.nn.functional import normalize

online = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(online.parameters())


def regression(one, two):
    return 2 - 2 * (normalize(one) * normalize(two)).sum(dim=-1)


for _ in range(4):
    first, second = online(torch.randn(8, 6)).chunk(2)
    loss_one = regression(first, torch.randn(4, 4))
    loss_two = regression(second, torch.randn(4, 4))
    loss = loss_one.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
