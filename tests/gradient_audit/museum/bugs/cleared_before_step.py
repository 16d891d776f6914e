"""G's gradients are cleared between its `backward()` and its `step()`; D's loss, whose fakes are detached, is right."""
# expects: error unreached at "opt_g.zero_grad()  # too late"
# cure: "    g_loss.backward(" -> "    opt_g.zero_grad()\n    g_loss.backward("
# cure: "    opt_g.zero_grad()  # too late\n" -> ""
# trains: generator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g = torch.optim.Adam(generator.parameters())
opt_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    g_loss.backward(inputs=list(generator.parameters()))
    opt_g.zero_grad()  # too late
    opt_g.step()
