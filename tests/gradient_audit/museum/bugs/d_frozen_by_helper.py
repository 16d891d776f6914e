"""set_requires_grad() freezes D for G's loss; the call that was to unfreeze it names G."""
# expects: error dead at "d_loss = discriminator("
# expects: mistake all-frozen at "d_loss.backward()"
# cure: "set_requires_grad(generator, True)" -> "set_requires_grad(discriminator, True)"
# trains: discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())


def set_requires_grad(network, requires_grad):
    for parameter in network.parameters():
        parameter.requires_grad = requires_grad


for _ in range(5):
    fake = generator(torch.randn(5, 3))
    set_requires_grad(discriminator, False)
    optimizer_g.zero_grad()
    g_loss = (discriminator(fake) - 1).square().mean()
    g_loss.backward()
    optimizer_g.step()

    set_requires_grad(generator, True)
    optimizer_d.zero_grad()
    d_loss = discriminator(fake.detach()).square().mean() + (discriminator(torch.randn(5, 4)) - 1).square().mean()
    d_loss.backward()
    optimizer_d.step()
