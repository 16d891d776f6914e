"""D's mean score of new fakes is kept for a curve, each with the graph of both networks."""
# expects: waste kept at "scores.append("
# cure: "    scores.append(" -> "    with torch.no_grad():\n        scores.append("

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus
scores = []

for _ in range(8):
    fake = generator(torch.randn(5, 3))
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(torch.randn(5, 4))).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    scores.append(discriminator(generator(torch.randn(5, 3))).mean())

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
