"""Both are cleared and both step for G's loss: D, trained on detached fakes before, learns to be deceived.

A form that people write, and where "call zero_grad()" leads who was told that D steps on old gradients.
"""
# expects: error mixed at "g_loss.backward()"
# expects: waste wasted at "g_loss.backward()"
# mistake: d-steps-on-g-loss
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"

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
    opt_d.zero_grad()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    opt_d.step()
