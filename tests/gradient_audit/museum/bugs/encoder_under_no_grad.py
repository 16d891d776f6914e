"""The encoder is to learn with the decoder, under one optimizer, and its codes are computed under no_grad."""
# expects: error unreached at "with torch.no_grad():"
# cure: "    with torch.no_grad():\n        code =" -> "    code ="
# trains: encoder

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(20):
    x = torch.randn(5, 4)
    with torch.no_grad():
        code = encoder(x)
    loss = nn.functional.mse_loss(decoder(code), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
