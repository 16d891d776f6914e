"""An autoencoder's two losses pull the codes apart and together, a backward pass for each: both are meant."""
# expects: nothing

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(5):
    x = torch.randn(5, 4)
    codes = encoder(x)
    optimizer.zero_grad()
    nn.functional.mse_loss(decoder(codes), x).backward(retain_graph=True)
    (0.1 * codes.square().sum(dim=1).mean()).backward()
    optimizer.step()
