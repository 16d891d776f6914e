"""G's optimizer was given the parameters of the whole module, D among them, beside D's own."""
# expects: question shared at "optimizer_g.step()"
# cure: "[*generator.parameters(), *discriminator.parameters()]" -> "generator.parameters()"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()])
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(4, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(4, 2)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    g_loss = -discriminator(fake).mean()
    g_loss.backward()
    optimizer_g.step()
