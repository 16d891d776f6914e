"""D's loss is computed and printed; what goes backward is the penalty alone.

https://github.com/eriklindernoren/PyTorch-GAN/blob/master/implementations/dragan/dragan.py
"""
# expects: error unreached at "fake_loss = "
# cure: "    penalty.backward()" -> "    (d_loss + penalty).backward()"
# trains: discriminator

import torch
from torch import nn

generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    imgs = torch.randn(5, 4)
    optimizer_G.zero_grad()
    gen_imgs = generator(torch.randn(5, 3))
    g_loss = bce(discriminator(gen_imgs), torch.ones(5, 1))
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_G.step()

    optimizer_D.zero_grad()
    real_loss = bce(discriminator(imgs), torch.ones(5, 1))
    fake_loss = bce(discriminator(gen_imgs.detach()), torch.zeros(5, 1))
    d_loss = (real_loss + fake_loss) / 2
    noisy = (imgs + 0.5 * imgs.std() * torch.rand(5, 4)).requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(noisy).sum(), noisy, create_graph=True)
    penalty = 10 * (slope.norm(2, dim=1) - 1).square().mean()
    penalty.backward()
    optimizer_D.step()
    print(d_loss.item(), g_loss.item())
