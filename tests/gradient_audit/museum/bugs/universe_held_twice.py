"""The list of D's parameters has the multi-resolution D twice and the multi-period D not at all.

https://github.com/line/open-universe/issues/5
"""
# expects: error ownerless at "optimizer_d = "
# cure: "+ list(loss_mrd" -> "+ list(loss_mpd"
# trains: loss_mpd
# mistake: parameter-twice

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of it
loss_mrd, loss_mpd = nn.Linear(4, 1), nn.Linear(4, 1)
parameters = list(loss_mrd.parameters()) + list(loss_mrd.parameters())
optimizer_d = torch.optim.SGD(parameters, lr=0.01)

for _ in range(5):
    speech, enhanced = torch.randn(4, 4), torch.randn(4, 4)
    d_loss = sum((1 - d(speech)).relu().mean() + (1 + d(enhanced)).relu().mean() for d in (loss_mrd, loss_mpd))
    optimizer_d.zero_grad()
    loss_mpd.zero_grad()
    d_loss.backward()
    optimizer_d.step()
