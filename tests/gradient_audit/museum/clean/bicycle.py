"""BicycleGAN: one loss for E and G on purpose, then a second one for G alone."""
# expects: question mixed at "loss.backward(retain_graph=True)"

import torch
from torch import nn

encoder, generator, discriminator = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(4, 1)
optimizer_e = torch.optim.Adam(encoder.parameters())
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    real = torch.randn(8, 4)
    z = torch.randn(8, 2)
    code = encoder(real)
    fake, random_fake = generator(code), generator(z)
    optimizer_d.zero_grad()
    (discriminator(fake.detach()).mean() - discriminator(real).mean()).backward()
    optimizer_d.step()
    discriminator.requires_grad_(False)
    optimizer_e.zero_grad()
    optimizer_g.zero_grad()
    loss = -discriminator(fake).mean() + (fake - real).abs().mean() + code.square().mean()
    loss.backward(retain_graph=True)
    encoder.requires_grad_(False)
    z_loss = (encoder(random_fake) - z).abs().mean()
    z_loss.backward()
    encoder.requires_grad_(True)
    discriminator.requires_grad_(True)
    optimizer_e.step()
    optimizer_g.step()
