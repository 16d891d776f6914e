"""D's loss goes through G, whose graph is kept, and the fakes are judged again: right, with two gradients for nothing.

Written after that script, not a copy of it.

https://github.com/growvv/GAN-Pytorch/blob/93b49bd7ce395c2035df1d036daad83a67a9c691/Simple-GAN/simple_gan.py
"""
# expects: waste wasted at "d_loss.backward(retain_graph=True)"
# expects: waste wasted at "g_loss.backward()"

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

    gen_imgs = generator(z)
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    d_loss = (real_loss + adversarial_loss(discriminator(gen_imgs), fake)) / 2
    optimizer_D.zero_grad()
    d_loss.backward(retain_graph=True)
    optimizer_D.step()

    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    optimizer_G.zero_grad()
    g_loss.backward()
    optimizer_G.step()
