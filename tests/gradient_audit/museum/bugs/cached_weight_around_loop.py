"""`parametrize.cached()` is around the loop and not in it: each loss sees the orthogonal weight of the first step."""
# expects: question outdated at "loss = cross_entropy"
# cure: "with parametrize.cached():" -> "for _ in range(8):"
# cure: "    for _ in range(8):" -> "    with parametrize.cached():"
# cure: "retain_graph=True" -> ""
# trains: network

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parametrizations, parametrize

torch.manual_seed(0)
network = nn.Sequential(parametrizations.orthogonal(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 2))
optimizer = torch.optim.Adam(network.parameters(), 1e-2)
with parametrize.cached():
    for _ in range(8):
        x = torch.randn(16, 6)
        loss = cross_entropy(network(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
