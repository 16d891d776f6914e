"""An autoencoder is trained, then a prior on its codes: the audit ends before the prior gets its first gradient."""
# expects: nothing

import torch
from torch import nn
from torch.optim import Adam

encoder, decoder, prior = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(2, 2)
optimizer_autoencoder = Adam([*encoder.parameters(), *decoder.parameters()])
optimizer_prior = Adam(prior.parameters())

for _ in range(300):
    x = torch.randn(5, 4)
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    optimizer_autoencoder.zero_grad()
    loss.backward()
    optimizer_autoencoder.step()

for _ in range(300):
    with torch.no_grad():
        code = encoder(torch.randn(5, 4))
    loss = nn.functional.mse_loss(prior(torch.randn_like(code)), code)
    optimizer_prior.zero_grad()
    loss.backward()
    optimizer_prior.step()
