"""zero_grad() between D's pass on real and its pass on fake images clears what the first one gave."""
# expects: question wasted at "opt_D.zero_grad()  # once more"
# cure: "    opt_D.zero_grad()  # once more\n" -> ""

import torch
from torch import nn

G, D = nn.Linear(3, 4), nn.Linear(4, 1)
opt_G, opt_D = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    real, z = torch.randn(6, 4), torch.randn(6, 3)
    with torch.no_grad():
        fake = G(z)
    opt_D.zero_grad()
    softplus(-D(real)).mean().backward()
    opt_D.zero_grad()  # once more
    softplus(D(fake)).mean().backward()
    opt_D.step()

    opt_G.zero_grad()
    softplus(-D(G(z))).mean().backward(inputs=list(G.parameters()))
    opt_G.step()
