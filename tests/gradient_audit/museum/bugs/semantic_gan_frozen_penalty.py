"""D is still frozen when the R1 penalty is computed: it goes backward to the images, and D steps on nothing.

https://github.com/nv-tlabs/semanticGAN_code/issues/25
"""
# expects: error dead at "r1_loss.backward()"
# cure: "    real.requires_grad = True" -> "    discriminator.requires_grad_(True)\n    real.requires_grad = True"
# mistake: penalty-on-frozen

import torch
from torch import nn

discriminator = nn.Sequential(nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 1))
d_optim = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    real = torch.randn(3, 4)
    discriminator.requires_grad_(True)
    d_loss = nn.functional.softplus(-discriminator(real)).mean()
    d_optim.zero_grad()
    d_loss.backward()
    d_optim.step()

    discriminator.requires_grad_(False)  # for G's step, and it stays so
    real.requires_grad = True
    (slope,) = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
    r1_loss = 5 * slope.square().sum(1).mean()
    d_optim.zero_grad()
    r1_loss.backward()
    d_optim.step()
