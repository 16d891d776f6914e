"""D's loss and G's are added, on fakes that nothing detaches, for one optimizer over both networks."""
# expects: question opposed at "(d_loss + g_loss).backward()"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()])
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake)).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer.zero_grad()
    (d_loss + g_loss).backward()
    optimizer.step()
