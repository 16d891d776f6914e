"""One pass of the fakes through D for both losses, its graph kept: D's step has changed what G's gradient needs.

https://www.cnblogs.com/LXP-Never/p/13951578.html
"""
# expects: error overwritten at "optimizer_D.step()"
# expects: mistake step-between-backwards at "g_loss.backward()"
# cure: "adversarial_loss(pred_gen, valid)" -> "adversarial_loss(discriminator(generator(z)), valid)"

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
adversarial_loss = nn.BCEWithLogitsLoss()
valid, fake = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    real_imgs, z = torch.randn(6, 4), torch.randn(6, 3)

    pred_gen = discriminator(generator(z))
    d_loss = (adversarial_loss(discriminator(real_imgs), valid) + adversarial_loss(pred_gen, fake)) / 2
    optimizer_D.zero_grad()
    d_loss.backward(retain_graph=True)
    optimizer_D.step()

    g_loss = adversarial_loss(pred_gen, valid)
    optimizer_G.zero_grad()
    g_loss.backward()
    optimizer_G.step()
