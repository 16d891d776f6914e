"""The adversarial term of G's loss judges a real frame, in place of the one that G has made.

https://github.com/SunnerLi/RecycleGAN/issues/2
"""
# expects: error dead at "loss_g = (fake_frame - true_"
# expects: waste wasted at "loss_g.backward()"
# cure: "mean() + (net_d(true_frame)" -> "mean() + (net_d(fake_frame)"
# cure: "loss_g.backward()" -> "loss_g.backward(inputs=list(net_g.parameters()))"

import torch
from torch import nn

net_g, net_d = nn.Linear(4, 4), nn.Linear(4, 1)
optim_g = torch.optim.Adam(net_g.parameters(), lr=2e-4)
optim_d = torch.optim.Adam(net_d.parameters(), lr=2e-4)

for _ in range(5):
    true_frame = torch.randn(2, 4)
    fake_frame = net_g(true_frame)
    optim_g.zero_grad()
    loss_g = (fake_frame - true_frame).abs().mean() + (net_d(true_frame) - 1).square().mean()
    loss_g.backward()
    optim_g.step()

    optim_d.zero_grad()
    loss_d = (net_d(true_frame) - 1).square().mean() + net_d(fake_frame.detach()).square().mean()
    loss_d.backward()
    optim_d.step()
