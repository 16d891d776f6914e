"""Both optimizers, made on one line, hold G: D stays as it was, and its pass finds no step."""
# expects: error ownerless at "optimizer_g, optimizer_d = "
# cure: "0.001), Adam(generator" -> "0.001), Adam(discriminator"
# cure: "loss_g.backward()" -> "loss_g.backward(inputs=[*generator.parameters()])"

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.optim import Adam

generator = nn.Linear(4, 8)
discriminator = nn.Linear(8, 1)
optimizer_g, optimizer_d = Adam(generator.parameters(), 0.001), Adam(generator.parameters(), 0.001)
for _ in range(20):
    real, z = torch.randn(5, 8), torch.randn(5, 4)
    with torch.no_grad():
        fakes = generator(z)
    optimizer_d.zero_grad()
    (softplus(-discriminator(real)).mean() + softplus(discriminator(fakes)).mean()).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = softplus(-discriminator(generator(z))).mean()
    loss_g.backward()
    optimizer_g.step()
