"""The code that an encoder gives is made a parameter, a new leaf, so that the encoder is not trained."""
# expects: error unreached at "optimizer.step()"
# says: copied to other parameters, as by `.data` or `nn.Parameter(x)`
# cure: "nn.Parameter(encoder(x))" -> "encoder(x)"

import torch
from torch import nn

encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(6):
    x = torch.randn(8, 8)
    code = nn.Parameter(encoder(x))
    loss = (decoder(code) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
