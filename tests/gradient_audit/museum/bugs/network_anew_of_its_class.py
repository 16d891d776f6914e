"""The generator is made anew, of a class whose `__init__` says `me`, after the first step; the optimizer is not."""
# expects: error ownerless at "generator = Generator()"
# expects: question unreached at "optimizer_g.step()"
# expects: waste wasted at "g_loss.backward()"
# cure: "        generator = Generator()" -> "        pass"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(me):
        super().__init__()
        me.layer = nn.Linear(3, 4)

    def forward(me, z):
        return me.layer(z)


generator, discriminator = Generator(), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
for step in range(8):
    if step == 1:
        generator = Generator()
    fake = generator(torch.randn(8, 3))
    real_logits, fake_logits = discriminator(torch.randn(8, 4)), discriminator(fake.detach())
    d_loss = nn.functional.softplus(-real_logits).mean() + nn.functional.softplus(fake_logits).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = nn.functional.softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
