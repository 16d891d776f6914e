"""G's gradients are summed over two micro-batches; D steps in each, and `update()` there changes the scale between.

PyTorch's notes on mixed precision say that the scale must stay the same while gradients are accumulated:
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
"""
# expects: error scaled at "scaler.scale(g_loss / 2)"
# cure: "softplus = nn" -> "scaler_d = torch.amp.GradScaler('cpu', growth_interval=1)\nsoftplus = nn"
# cure: "scaler.scale(d_loss)" -> "scaler_d.scale(d_loss)"
# cure: "scaler.step(optimizer_d)" -> "scaler_d.step(optimizer_d)"
# cure: "        scaler.update()" -> "        scaler_d.update()"
# cure: "    scaler.step(optimizer_g)" -> "    scaler.step(optimizer_g)\n    scaler.update()"
# trains: netG, netD

import torch
from torch import nn

netG, netD = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g, optimizer_d = torch.optim.SGD(netG.parameters(), lr=0.1), torch.optim.SGD(netD.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", growth_interval=1)
softplus = nn.functional.softplus

for _ in range(5):
    optimizer_g.zero_grad()
    for real in torch.randn(2, 5, 4):
        fake = netG(torch.randn(5, 3))
        d_loss = softplus(-netD(real)).mean() + softplus(netD(fake.detach())).mean()
        optimizer_d.zero_grad()
        scaler.scale(d_loss).backward()
        scaler.step(optimizer_d)
        g_loss = softplus(-netD(fake)).mean()
        scaler.scale(g_loss / 2).backward(inputs=list(netG.parameters()))
        scaler.update()
    scaler.step(optimizer_g)
