"""The adversarial loss has a `backward()` of its own, on detached fakes: only the other loss moves G."""
# expects: question wasted at "g_loss = softplus("
# cure: "-D(fake.detach())).mean()" -> "-D(fake)).mean()"
# cure: "    g_loss.backward()" -> "    g_loss.backward(inputs=list(G.parameters()), retain_graph=True)"

import torch
from torch import nn

G, D = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    fake, target = G(torch.randn(5, 3)), torch.randn(5, 4)
    d_loss = softplus(D(fake.detach())).mean() + softplus(-D(target)).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = softplus(-D(fake.detach())).mean()
    opt_g.zero_grad()
    g_loss.backward()
    (fake - target).abs().mean().backward()
    opt_g.step()
