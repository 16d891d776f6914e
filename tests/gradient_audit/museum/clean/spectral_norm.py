"""spectral_norm of parametrizations builds a graph when it is made."""
# expects: nothing

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

generator = nn.Linear(3, 2)
discriminator = nn.Sequential(spectral_norm(nn.Linear(2, 4)), nn.ReLU(), spectral_norm(nn.Linear(4, 1)))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(4, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(4, 2)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
