"""One optimizer holds both networks, and no detach(): D's loss moves G, and G's loss D, each against the other."""
# expects: question opposed at "d_loss.backward(retain_graph=True)"
# cure: "[*generator.parameters(), *" -> "generator.parameters())\noptimizer_d = torch.optim.Adam("
# cure: "discriminator.parameters()])" -> "discriminator.parameters())"
# cure: "discriminator(fake)" -> "discriminator(fake.detach())"
# cure: "softplus(-logits)" -> "softplus(-discriminator(fake))"
# cure: "    optimizer.zero_grad()" -> "    optimizer.zero_grad()\n    optimizer_d.zero_grad()"
# cure: "retain_graph=True" -> ""
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"
# cure: "    optimizer.step()" -> "    optimizer.step()\n    optimizer_d.step()"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()])
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    logits = discriminator(fake)
    d_loss = softplus(logits).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    g_loss = softplus(-logits).mean()
    optimizer.zero_grad()
    d_loss.backward(retain_graph=True)
    g_loss.backward()
    optimizer.step()
