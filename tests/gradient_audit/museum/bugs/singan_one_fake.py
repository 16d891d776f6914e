"""G makes one fake and takes several steps with it: the second goes back through weights that the first has changed.

https://github.com/tamarott/SinGAN/issues/148
"""
# expects: error overwritten at "optimizer_g.step()"
# cure: "        err_g =" -> "        fake = net_g(torch.randn(2, 4))\n        err_g ="
# mistake: step-between-backwards

import torch
from torch import nn

net_g = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))
net_d = nn.Linear(4, 1)
optimizer_d = torch.optim.Adam(net_d.parameters())
optimizer_g = torch.optim.Adam(net_g.parameters())

for _ in range(4):
    fake = net_g(torch.randn(2, 4))
    optimizer_d.zero_grad()
    err_d = net_d(fake.detach()).mean() - net_d(torch.randn(2, 4)).mean()
    err_d.backward()
    optimizer_d.step()
    for _ in range(3):
        optimizer_g.zero_grad()
        err_g = -net_d(fake).mean()
        err_g.backward(retain_graph=True, inputs=list(net_g.parameters()))
        optimizer_g.step()
