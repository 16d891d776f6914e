"""D steps between two passes through its answer to the fakes, in a script that initialises its weights through .data.

The initialisation, as of DCGAN's tutorial and its copies, comes before all passes and is not to blame. No public report
of it was found.
"""
# expects: error overwritten at "opt_D.step()"
# expects: mistake step-between-backwards at "g_loss.backward("
# cure: "    g_loss = bce(pred" -> "    g_loss = bce(D(fake)"
# trains: G, D

import torch
from torch import nn


def weights_init(module):
    if type(module) is nn.Linear:
        module.weight.data.normal_(0.0, 0.02)
        module.bias.data.fill_(0)


G = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8))
D = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
G.apply(weights_init)
D.apply(weights_init)
opt_G, opt_D = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()

for _ in range(5):
    real, fake = torch.randn(6, 8), G(torch.randn(6, 5))
    pred = D(fake)
    d_loss = bce(D(real), torch.ones(6, 1)) + bce(pred, torch.zeros(6, 1))
    opt_D.zero_grad()
    d_loss.backward(retain_graph=True, inputs=list(D.parameters()))
    opt_D.step()
    g_loss = bce(pred, torch.ones(6, 1))
    opt_G.zero_grad()
    g_loss.backward(inputs=list(G.parameters()))
    opt_G.step()
