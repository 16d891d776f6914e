"""G and the encoder step, and then D's loss goes through the same fakes: the weights of G are what was overwritten.

https://github.com/zhampel/clusterGAN/issues/2
"""
# expects: error overwritten at "optimizer_ge.step()"
# cure: "d_real.mean() - d_fake.mean()" -> "d_real.mean() - discriminator(fake.detach()).mean()"
# mistake: step-between-backwards
# says: A Linear's weight of shape [4, 6] is transposed in the message.

import itertools

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(3, 6), nn.LeakyReLU(0.2), nn.Linear(6, 4))
encoder, discriminator = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer_ge = torch.optim.Adam(itertools.chain(encoder.parameters(), generator.parameters()))
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    z, real = torch.randn(5, 3), torch.randn(5, 4)
    optimizer_ge.zero_grad()
    fake = generator(z)
    d_fake, d_real = discriminator(fake), discriminator(real)
    ge_loss = d_fake.mean() + (encoder(fake) - z).square().mean()
    ge_loss.backward(retain_graph=True)
    optimizer_ge.step()

    optimizer_d.zero_grad()
    d_loss = d_real.mean() - d_fake.mean()
    d_loss.backward()
    optimizer_d.step()
