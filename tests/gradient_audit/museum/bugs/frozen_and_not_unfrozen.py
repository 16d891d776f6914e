"""D is frozen for the step of G and not unfrozen: from the second iteration on, its optimizer finds no gradient."""
# expects: question unreached at "optimizer_d.step()"
# expects: waste wasted at "    loss.backward()"
# cure: "    fake = G(torch" -> "    D.requires_grad_(True)\n    fake = G(torch"
# cure: "D(fake)" -> "D(fake.detach())"
# trains: D

import torch
from torch import nn

G, D = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer_g, optimizer_d = torch.optim.SGD(G.parameters(), 0.01), torch.optim.SGD(D.parameters(), 0.01)
bce = nn.functional.binary_cross_entropy_with_logits
for _ in range(8):
    fake = G(torch.randn(16, 4))
    r, f = D(torch.randn(16, 8)), D(fake)
    optimizer_d.zero_grad()
    loss = bce(r, torch.ones_like(r)) + bce(f, torch.zeros_like(f))
    loss.backward()
    optimizer_d.step()
    D.requires_grad_(False)
    optimizer_g.zero_grad()
    s = D(G(torch.randn(16, 4)))
    bce(s, torch.ones_like(s)).backward()
    optimizer_g.step()
