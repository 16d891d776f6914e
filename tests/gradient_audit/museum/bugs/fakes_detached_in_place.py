"""The fakes for D are detached in place, so that the loss of G has no graph to it, either."""
# expects: error unreached at "fake.detach_()"
# cure: "fake.detach_()" -> "fake.detach()"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=[*generator.parameters()])"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(8, 3))
    fake_logits = discriminator(fake.detach_())
    d_loss = softplus(-discriminator(torch.randn(8, 4))).mean() + softplus(fake_logits).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
