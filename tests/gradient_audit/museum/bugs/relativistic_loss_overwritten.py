"""The relativistic loss of G is computed, and the next line writes the plain one over it.

https://github.com/eriklindernoren/PyTorch-GAN/issues/52
"""
# expects: question unused at "pred_fake = discriminator(gen_imgs)"
# cure: "    g_loss = bce(discriminator(gen_imgs), valid)\n" -> ""

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_G = torch.optim.Adam(generator.parameters())
optimizer_D = torch.optim.Adam(discriminator.parameters())
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    imgs, valid = torch.randn(5, 4), torch.ones(5, 1)
    optimizer_G.zero_grad()
    gen_imgs = generator(torch.randn(5, 3))
    with torch.no_grad():
        pred_real = discriminator(imgs)
    pred_fake = discriminator(gen_imgs)
    g_loss = bce(pred_fake - pred_real.mean(0, keepdim=True), valid)
    g_loss = bce(discriminator(gen_imgs), valid)
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_G.step()

    optimizer_D.zero_grad()
    d_real, d_fake = discriminator(imgs), discriminator(gen_imgs.detach())
    d_loss = (bce(d_real - d_fake.mean(), valid) + bce(d_fake - d_real.mean(), 1 - valid)) / 2
    d_loss.backward()
    optimizer_D.step()
