"""A helper clears and steps all optimizers for each of the two losses: D steps on G's loss alone."""
# expects: error mixed at "g_loss.backward()"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizers = [torch.optim.Adam(network.parameters()) for network in (generator, discriminator)]
softplus = nn.functional.softplus


def clear():
    for optimizer in optimizers:
        optimizer.zero_grad()


def step():
    for optimizer in optimizers:
        optimizer.step()


for _ in range(5):
    with torch.no_grad():
        fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake)).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    clear()
    d_loss.backward()
    step()

    g_loss = softplus(-discriminator(generator(torch.randn(5, 3)))).mean()
    clear()
    g_loss.backward()
    step()
