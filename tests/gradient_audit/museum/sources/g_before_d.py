"""G's whole update, then D's on the same fakes, detached: right.

https://www.cnblogs.com/LXP-Never/p/13951578.html
"""
# expects: waste wasted at "g_loss.backward()"

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.autograd import Variable

Tensor = torch.FloatTensor
opt = SimpleNamespace(latent_dim=3)
generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
adversarial_loss = nn.BCEWithLogitsLoss()

for imgs in torch.randn(5, 6, 4):
    valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
    fake = Variable(Tensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)
    z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], opt.latent_dim))))
    real_imgs = Variable(imgs.type(Tensor))

    optimizer_G.zero_grad()
    gen_imgs = generator(z)
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()

    optimizer_D.zero_grad()
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    optimizer_D.step()
