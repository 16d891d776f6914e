"""The fake that D judges in the loss of G is a new leaf, so only the L1 term trains G."""
# expects: error dead at "pair = torch.cat"
# cure: ".detach().requires_grad_()" -> ""
# trains: generator, discriminator

import torch
from torch import nn
from torch.nn.functional import l1_loss, softplus

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
for _ in range(10):
    a, b = torch.randn(8, 4), torch.randn(8, 8)
    fake = generator(a)
    real_logits = discriminator(torch.cat([a, b], 1))
    fake_logits = discriminator(torch.cat([a, fake.detach()], 1))
    d_loss = softplus(-real_logits).mean() + softplus(fake_logits).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    discriminator.requires_grad_(False)
    pair = torch.cat([a, fake.detach().requires_grad_()], 1)
    g_loss = softplus(-discriminator(pair)).mean() + 100 * l1_loss(fake, b)
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    discriminator.requires_grad_(True)
