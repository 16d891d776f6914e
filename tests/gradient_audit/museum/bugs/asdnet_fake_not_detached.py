"""D's loss on fakes that are not detached fills G, and G steps on it together with its own loss.

https://github.com/ginobilinie/asdnet/issues/2
"""
# expects: error mixed at "loss_d.backward("
# cure: "loss_d.backward(retain_graph=True)" -> "loss_d.backward(retain_graph=True, inputs=list(net_d.parameters()))"

import torch
from torch import nn

net_g, net_d = nn.Linear(4, 4), nn.Linear(4, 1)
optim_g = torch.optim.Adam(net_g.parameters())
optim_d = torch.optim.Adam(net_d.parameters())
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    scan, labels = torch.randn(2, 4), torch.rand(2, 4)
    optim_g.zero_grad()
    optim_d.zero_grad()
    segmented = net_g(scan)
    loss_d = bce(net_d(labels), torch.ones(2, 1)) + bce(net_d(segmented), torch.zeros(2, 1))
    loss_d.backward(retain_graph=True)
    loss_g = (segmented - labels).abs().mean()
    loss_g.backward()
    optim_d.step()
    optim_g.step()
