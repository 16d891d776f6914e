"""G's last layer came later and is not in its optimizer: it keeps its first weights, and D learns to see it."""
# expects: error ownerless at "generator = nn.ModuleDict"
# cure: "generator["body"].parameters()" -> "generator.parameters()"
# trains: generator

import torch
from torch import nn

generator = nn.ModuleDict({"body": nn.Linear(3, 4), "last": nn.Linear(4, 4)})
discriminator = nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator["body"].parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake = generator["last"](generator["body"](torch.randn(5, 3)).relu())
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
