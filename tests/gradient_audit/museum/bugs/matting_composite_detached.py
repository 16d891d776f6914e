"""The composite that D judges is built anew as a tensor of its own, without G's graph.

https://github.com/senguptaumd/Background-Matting/issues/51
"""
# expects: error dead at "return torch.autograd.Variable"
# expects: waste wasted at "    loss.backward()"
# cure: "torch.autograd.Variable((" -> "("
# cure: " * background).data)" -> " * background)"
# cure: "    loss.backward()" -> "    loss.backward(inputs=list(net_g.parameters()))"
# cure: "net_d(fake).square()" -> "net_d(fake.detach()).square()"

import torch
from torch import nn

net_g, net_d = nn.Linear(8, 5), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(net_g.parameters(), lr=1e-4)
optimizer_d = torch.optim.Adam(net_d.parameters(), lr=1e-5)


def compose(alpha, foreground, background):
    return torch.autograd.Variable((foreground * alpha + (1 - alpha) * background).data)


for _ in range(5):
    image, background = torch.randn(3, 4), torch.randn(3, 4)
    out = net_g(torch.cat((image, background), 1))
    alpha, foreground = out[:, :1].sigmoid(), out[:, 1:]
    fake = compose(alpha, foreground, background)
    loss = (foreground - image).abs().mean() + (net_d(fake) - 1).square().mean()
    optimizer_g.zero_grad()
    loss.backward()
    optimizer_g.step()

    d_loss = net_d(fake).square().mean() + (net_d(image) - 1).square().mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
