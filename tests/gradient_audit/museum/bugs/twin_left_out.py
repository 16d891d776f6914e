"""Two discriminators, and the list for their optimizer has one of them: the other never learns."""
# expects: error ownerless at "netD_B = nn"
# says: no optimizer holds netD_B
# cure: "[*netD_A.parameters()]" -> "[*netD_A.parameters(), *netD_B.parameters()]"
# trains: netD_B

import torch
from torch import nn

netG = nn.Linear(4, 4)
netD_A = nn.Linear(4, 1)
netD_B = nn.Linear(4, 1)
optimizer_G = torch.optim.Adam(netG.parameters())
grad_vars = [*netD_A.parameters()]
optimizer_D = torch.optim.Adam(grad_vars)

for _ in range(5):
    real, fake = torch.randn(5, 4), netG(torch.randn(5, 4))
    loss_D = sum((netD(real) - 1).square().mean() + netD(fake.detach()).square().mean() for netD in (netD_A, netD_B))
    optimizer_D.zero_grad()
    netD_B.zero_grad()
    loss_D.backward()
    optimizer_D.step()

    loss_G = sum((netD(fake) - 1).square().mean() for netD in (netD_A, netD_B))
    optimizer_G.zero_grad()
    loss_G.backward(inputs=list(netG.parameters()))
    optimizer_G.step()
