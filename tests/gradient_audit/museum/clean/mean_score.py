"""The tutorial's D_x = D(x).mean().item(), and a sample that nobody wraps in no_grad: neither leads the report."""
# expects: waste graph at "picture = generator(fixed)"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
fixed = torch.randn(4, 3)

for _ in range(5):
    output = discriminator(torch.randn(4, 2))
    mean_score = output.mean().item()
    fake = generator(torch.randn(4, 3))
    d_loss = discriminator(fake.detach()).mean() - output.mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
    picture = generator(fixed)
