"""D's loss goes through scaler.scale(), G's does not: its gradients are divided by a scale that they never had."""
# expects: error scaled at "g_loss.backward("
# cure: "        g_loss.backward(" -> "        scaler.scale(g_loss).backward("
# trains: netG

import torch
from torch import nn

netG, netD = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g, optimizer_d = torch.optim.SGD(netG.parameters(), lr=0.1), torch.optim.SGD(netD.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
softplus = nn.functional.softplus

for _ in range(5):
    for real in torch.randn(2, 5, 4):
        fake = netG(torch.randn(5, 3))
        d_loss = softplus(-netD(real)).mean() + softplus(netD(fake.detach())).mean()
        optimizer_d.zero_grad()
        scaler.scale(d_loss).backward()
        scaler.step(optimizer_d)

        g_loss = softplus(-netD(fake)).mean()
        optimizer_g.zero_grad()
        g_loss.backward(inputs=list(netG.parameters()))
        scaler.step(optimizer_g)
        scaler.update()
