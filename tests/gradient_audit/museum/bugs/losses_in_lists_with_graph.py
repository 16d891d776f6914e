"""Both losses of a GAN are put into lists for a plot, with their graphs: a form that people write."""
# expects: waste kept at "err_d.backward()"
# expects: waste kept at "err_g.backward(inputs"
# mistake: loss-kept-with-graph
# cure: "append(err_g)" -> "append(err_g.item())"
# cure: "append(err_d)" -> "append(err_d.item())"

import torch
from torch import nn

net_g, net_d = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(net_g.parameters())
optimizer_d = torch.optim.Adam(net_d.parameters())
bce = nn.functional.binary_cross_entropy_with_logits
g_losses, d_losses = [], []

for _ in range(8):
    fake = net_g(torch.randn(5, 3))
    optimizer_d.zero_grad()
    err_d = bce(net_d(torch.randn(5, 4)), torch.ones(5, 1)) + bce(net_d(fake.detach()), torch.zeros(5, 1))
    err_d.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    err_g = bce(net_d(fake), torch.ones(5, 1))
    err_g.backward(inputs=list(net_g.parameters()))
    optimizer_g.step()
    g_losses.append(err_g)
    d_losses.append(err_d)
