"""A helper clips the network that it is given, and for D it is given G: D is never clipped, and G once more."""
# expects: question clipped at "nn.utils.clip_grad_norm_(network.parameters(), 0.01)"
# expects: waste wasted at "loss.backward()"
# cure: "loss_d, generator)" -> "loss_d, discriminator)"
# cure: "generator(torch.randn(8, 3)).detach()" -> "torch.randn(8, 4)"
# cure: "loss.backward()" -> "loss.backward(inputs=[*network.parameters()])"
# expects: waste graph at "generator(torch.randn(8, 3)).detach()"
# networks: generator, discriminator

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g, optimizer_d = torch.optim.Adam(generator.parameters()), torch.optim.Adam(discriminator.parameters())


def optimize(optimizer, loss, network):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 0.01)
    optimizer.step()


for _ in range(6):
    optimize(optimizer_g, softplus(-discriminator(generator(torch.randn(8, 3)))).mean(), generator)
    real, fake = torch.randn(8, 4), generator(torch.randn(8, 3)).detach()
    loss_d = softplus(-discriminator(real)).mean() + softplus(discriminator(fake)).mean()
    optimize(optimizer_d, loss_d, generator)
