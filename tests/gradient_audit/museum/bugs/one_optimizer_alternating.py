"""One optimizer over both networks steps for D's loss, then for G's, without detach(): each undoes the other."""
# expects: question opposed at "d_loss.backward()"
# cure: "[*generator.parameters(), *" -> "generator.parameters())\noptimizer_d = torch.optim.Adam("
# cure: "discriminator.parameters()])" -> "discriminator.parameters())"
# cure: "generator(z))).mean() +" -> "generator(z).detach())).mean() +"
# cure: "    optimizer.zero_grad()\n    d_loss" -> "    optimizer_d.zero_grad()\n    d_loss"
# cure: "d_loss.backward()\n    optimizer" -> "d_loss.backward()\n    optimizer_d"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()])
softplus = nn.functional.softplus

for _ in range(5):
    z = torch.randn(5, 3)
    d_loss = softplus(discriminator(generator(z))).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer.zero_grad()
    d_loss.backward()
    optimizer.step()

    g_loss = softplus(-discriminator(generator(z))).mean()
    optimizer.zero_grad()
    g_loss.backward()
    optimizer.step()
