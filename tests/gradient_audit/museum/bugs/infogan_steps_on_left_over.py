"""The third optimizer holds G and D and is never told to clear: it steps on D's part of both losses before it.

https://github.com/znxlwm/pytorch-generative-model-collections/blob/master/infoGAN.py
"""
# expects: error twice at "info_optimizer.step()"
# cure: "    info_loss.backward()" -> "    info_optimizer.zero_grad()\n    info_loss.backward()"

import torch
from torch import nn

G, D = nn.Linear(3, 4), nn.Linear(4, 1)
G_optimizer, D_optimizer = (torch.optim.SGD(network.parameters(), 0.1) for network in (G, D))
info_optimizer = torch.optim.SGD([*G.parameters(), *D.parameters()], 0.1)

for _ in range(5):
    z = torch.randn(5, 3)
    D_optimizer.zero_grad()
    with torch.no_grad():
        fake = G(z)
    d_loss = D(fake).mean() - D(torch.randn(5, 4)).mean()
    d_loss.backward()
    D_optimizer.step()

    G_optimizer.zero_grad()
    g_loss = -D(G(z)).mean()
    g_loss.backward()
    G_optimizer.step()

    info_loss = D(G(z)).square().mean()
    info_loss.backward()
    info_optimizer.step()
