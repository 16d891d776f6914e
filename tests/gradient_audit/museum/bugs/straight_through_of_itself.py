"""A quantizer whose second loss takes the code from a value that already has the input's gradient.

`quantized` is `x + (code - x).detach()`: its gradient is that of `x`, so in `x - quantized` both cancel each other.
The commitment moves nothing; the first term alone trains the encoder.
"""
# expects: question dead at "loss = (quantized - torch.ra"
# says: `Mul` from "missed.square().mean()" gives encoder a gradient of exactly zero
# cure: "missed = x - quantized" -> "missed = x - quantized.detach()"
# trains: encoder

import torch
from torch import nn

encoder = nn.Linear(4, 4)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)

for _ in range(4):
    x = encoder(torch.randn(8, 4))
    quantized = x + (x.round() - x).detach()
    missed = x - quantized
    loss = (quantized - torch.randn(8, 4)).square().mean() + 0.25 * missed.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
