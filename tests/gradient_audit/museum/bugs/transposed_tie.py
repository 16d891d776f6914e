"""An autoencoder's decoder is tied by a Parameter of the transpose: two parameters in one memory, both of which move.

A step moves the weight twice; `d.weight.data = e.weight.data.t()` has the same effect.
"""
# expects: question twice at "optimizer.step()"
# cure: "encoder.weight.t()" -> "encoder.weight.t().clone()"
# networks: encoder, decoder

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
decoder.weight = nn.Parameter(encoder.weight.t())
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(6):
    data = torch.randn(16, 8)
    loss = mse_loss(decoder(encoder(data).relu()), data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
