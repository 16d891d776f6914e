"""Right, and wasteful: G's loss fills D, which is cleared in time, and a network that only judges."""
# expects: waste wasted at "g_loss.backward()"
# expects: waste unfrozen at "g_loss.backward()"

import torch
from torch import nn

G, D, features = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 2)
G_optimizer, D_optimizer = (torch.optim.SGD(network.parameters(), 0.1) for network in (G, D))

for _ in range(5):
    fake = G(torch.randn(4, 3))
    G_optimizer.zero_grad()
    g_loss = features(fake).square().mean() - D(fake).mean()
    g_loss.backward()
    G_optimizer.step()

    D_optimizer.zero_grad()
    d_loss = D(fake.detach()).mean() - D(torch.randn(4, 4)).mean()
    d_loss.backward()
    D_optimizer.step()
