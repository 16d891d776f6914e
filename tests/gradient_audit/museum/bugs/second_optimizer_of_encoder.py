"""The adversarial step of an autoencoder: `inputs=` leaves out the encoder, whose second optimizer steps on nothing."""
# expects: error unreached at "optimizer_e.step()"
# expects: waste wasted at "inputs=list(D.parameters())"
# expects: waste graph at "    z = E(x)"
# cure: "inputs=list(D.parameters())" -> "inputs=list(E.parameters())"
# trains: E

import torch
from torch import nn

E, D, basis = nn.Linear(8, 4), nn.Linear(4, 1), torch.randn(4, 8)
optimizer_r = torch.optim.SGD(E.parameters(), 0.01)
optimizer_e, optimizer_d = torch.optim.SGD(E.parameters(), 0.01), torch.optim.SGD(D.parameters(), 0.01)
bce = nn.functional.binary_cross_entropy_with_logits
for _ in range(8):
    x = torch.randn(16, 8)
    optimizer_r.zero_grad()
    (E(x) @ basis - x).square().mean().backward()
    optimizer_r.step()
    z = E(x)
    optimizer_d.zero_grad()
    r, f = D(torch.randn(16, 4)), D(z.detach())
    (bce(r, torch.ones_like(r)) + bce(f, torch.zeros_like(f))).backward()
    optimizer_d.step()
    optimizer_e.zero_grad()
    s = D(z)
    bce(s, torch.ones_like(s)).backward(inputs=list(D.parameters()))
    optimizer_e.step()
