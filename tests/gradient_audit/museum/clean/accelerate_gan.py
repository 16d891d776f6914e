"""Two wrapped optimizers: they step, although the wrappers' own hooks are never called."""
# expects: nothing
# networks: G, D

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "site-packages"))
from trainer_library import Accelerator

accelerator = Accelerator()
G, D = nn.Linear(3, 4), nn.Linear(4, 1)
G_optimizer, D_optimizer = (torch.optim.SGD(network.parameters(), 0.1) for network in (G, D))
G, D, G_optimizer, D_optimizer = accelerator.prepare(G, D, G_optimizer, D_optimizer)

for _ in range(12):
    fake = G(torch.randn(5, 3))
    D_optimizer.zero_grad()
    d_loss = D(fake.detach()).mean() - D(torch.randn(5, 4)).mean()
    accelerator.backward(d_loss)
    D_optimizer.step()

    G_optimizer.zero_grad()
    g_loss = -D(fake).mean()
    accelerator.backward(g_loss, inputs=list(G.parameters()))
    G_optimizer.step()
