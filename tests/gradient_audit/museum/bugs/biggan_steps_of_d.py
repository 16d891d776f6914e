"""D takes several steps for one of G, and its gradients are cleared before the first alone.

https://github.com/ajbrock/BigGAN-PyTorch/issues/25
"""
# expects: error stale at "D_loss.backward()"
# expects: waste wasted at "G_loss.backward()"
# cure: "        D_loss.backward()" -> "        D_optim.zero_grad()\n        D_loss.backward()"
# cure: "G_loss.backward()" -> "G_loss.backward(inputs=list(G.parameters()))"
# mistake: no-zero-grad

import torch
from torch import nn

G, D = nn.Linear(3, 2), nn.Linear(2, 1)
G_optim = torch.optim.Adam(G.parameters())
D_optim = torch.optim.Adam(D.parameters())

for _ in range(5):
    G_optim.zero_grad()
    D_optim.zero_grad()
    for _ in range(2):
        with torch.no_grad():
            fakes = G(torch.randn(4, 3))
        D_loss = (1 - D(torch.randn(4, 2))).relu().mean() + (1 + D(fakes)).relu().mean()
        D_loss.backward()
        D_optim.step()
    G_loss = -D(G(torch.randn(4, 3))).mean()
    G_loss.backward()
    G_optim.step()
