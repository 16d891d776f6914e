"""D's loss and G's are added, on fakes that nothing detaches, for one optimizer over both networks."""
# expects: question opposed at "(d_loss + g_loss).backward()"
# cure: "[*generator.parameters(), *" -> "generator.parameters())\noptimizer_d = torch.optim.Adam("
# cure: "discriminator.parameters()])" -> "discriminator.parameters())"
# cure: "(discriminator(fake)).mean() +" -> "(discriminator(fake.detach())).mean() +"
# cure: "    optimizer.zero_grad()" -> "    optimizer.zero_grad()\n    optimizer_d.zero_grad()"
# cure: "(d_loss + g_loss)" -> "d_loss.backward()\n    g_loss"
# cure: "g_loss.backward()" -> "g_loss.backward(inputs=list(generator.parameters()))"
# cure: "    optimizer.step()" -> "    optimizer.step()\n    optimizer_d.step()"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()])
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake)).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    g_loss = softplus(-discriminator(fake)).mean()
    optimizer.zero_grad()
    (d_loss + g_loss).backward()
    optimizer.step()
