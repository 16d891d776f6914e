"""No optimizer clears a gradient, and G's loss goes on into D: one call that is missing in two places, one finding."""
# expects: error stale at "d_loss.backward()"
# expects: waste wasted at "g_loss.backward()"
# says: optimizers of generator and discriminator stepped again
# cure: "    d_loss.backward()" -> "    opt_d.zero_grad()\n    d_loss.backward()"
# cure: "    g_loss.backward()" -> "    opt_g.zero_grad()\n    g_loss.backward(inputs=list(generator.parameters()))"
# mistake: no-zero-grad

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g = torch.optim.Adam(generator.parameters())
opt_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    d_loss.backward()
    opt_d.step()
    g_loss = softplus(-discriminator(fake)).mean()
    g_loss.backward()
    opt_g.step()
