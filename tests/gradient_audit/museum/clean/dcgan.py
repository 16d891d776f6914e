"""The textbook order: D on real images, D on detached fakes, one step; then G, with D frozen."""
# expects: nothing

import torch
from torch import nn

netG, netD = (
    nn.Sequential(nn.Linear(3, 4), nn.Tanh()),
    nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1)),
)
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()

for _ in range(5):
    netD.zero_grad()
    errD_real = criterion(netD(torch.randn(5, 4)), torch.ones(5, 1))
    errD_real.backward()
    fake = netG(torch.randn(5, 3))
    errD_fake = criterion(netD(fake.detach()), torch.zeros(5, 1))
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()

    netG.zero_grad()
    netD.requires_grad_(False)
    errG = criterion(netD(fake), torch.ones(5, 1))
    errG.backward()
    print(f"{errD.item():.3f} {errG.item():.3f}")
    optimizerG.step()
    netD.requires_grad_(True)
