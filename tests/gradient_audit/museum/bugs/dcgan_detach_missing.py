"""D's loss goes through the fakes and frees the graph that G's loss needs.

https://github.com/pytorch/examples/issues/116
"""
# expects: error freed at "err_d.backward()"
# expects: mistake second-backward at "err_g.backward()"
# cure: "net_d(fake), torch.zeros" -> "net_d(fake.detach()), torch.zeros"

import torch
from torch import nn

net_g, net_d = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(net_g.parameters())
optimizer_d = torch.optim.Adam(net_d.parameters())
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    fake = net_g(torch.randn(5, 3))
    optimizer_d.zero_grad()
    err_d = bce(net_d(torch.randn(5, 4)), torch.ones(5, 1)) + bce(net_d(fake), torch.zeros(5, 1))
    err_d.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    err_g = bce(net_d(fake), torch.ones(5, 1))
    err_g.backward()
    optimizer_g.step()
