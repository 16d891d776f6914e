"""G's loss leaves gradients in D, and nothing clears them before D's loss adds its own: D steps on the sum.

https://github.com/Lightning-AI/pytorch-lightning/issues/591
"""
# expects: error mixed at "g_loss.backward()"
# expects: waste graph at "fake = bce("
# cure: "    g_loss.backward()" -> "    g_loss.backward(inputs=list(generator.parameters()))"
# cure: "    fake =" -> "    with torch.no_grad():\n        made = generator(z)\n    fake ="
# cure: "generator(z).detach()" -> "made"
# mistake: d-steps-on-g-loss

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=0.01)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=0.01)
bce = nn.BCEWithLogitsLoss()

for _ in range(5):
    images, z = torch.randn(4, 2), torch.randn(4, 3)
    g_loss = bce(discriminator(generator(z)), torch.ones(4, 1))
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()

    real = bce(discriminator(images), torch.ones(4, 1))
    fake = bce(discriminator(generator(z).detach()), torch.zeros(4, 1))
    d_loss = (real + fake) / 2
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
