"""Binary codes by sign(), which has no slope: the encoder in front of it gets gradients, and all are zero."""
# expects: question unreached at "optimizer.step()"
# says: all parameters of encoder had a gradient of exactly zero at every step
# cure: "torch.sign(encoder(x))" -> "(lambda h: h + (torch.sign(h) - h).detach())(encoder(x))"
# trains: encoder

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 6), nn.Linear(6, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(6):
    x = torch.randn(8, 4)
    loss = (decoder(torch.sign(encoder(x))) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
