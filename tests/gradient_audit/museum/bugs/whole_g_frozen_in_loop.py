"""G is frozen for D's step in a loop over its parameters, and never unfrozen, so its optimizer finds nothing."""
# expects: question unreached at "optimizer_g.step()"
# expects: waste wasted at "g_loss.backward()"
# cure: "    g_loss = soft" -> "    generator.requires_grad_(True)\n    g_loss = soft"
# cure: "    g_loss.backward()" -> "    g_loss.backward(inputs=list(generator.parameters()))"
# trains: discriminator

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
for _ in range(10):
    for p in generator.parameters():
        p.requires_grad = False
    fake = generator(torch.randn(8, 4))
    d_loss = softplus(-discriminator(torch.randn(8, 8))).mean() + softplus(discriminator(fake)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    g_loss = softplus(-discriminator(generator(torch.randn(8, 4)))).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
