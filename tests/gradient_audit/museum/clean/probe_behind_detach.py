"""A probe on the codes of an autoencoder, with an optimizer of its own: detach() is what it is about."""
# expects: nothing

import torch
from torch import nn

encoder, decoder, probe = nn.Linear(4, 3), nn.Linear(3, 4), nn.Linear(3, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
optimizer_probe = torch.optim.Adam(probe.parameters())

for _ in range(5):
    x, labels = torch.randn(5, 4), torch.randint(2, (5,))
    codes = encoder(x).tanh()
    optimizer.zero_grad()
    nn.functional.mse_loss(decoder(codes), x).backward()
    optimizer.step()

    optimizer_probe.zero_grad()
    nn.functional.cross_entropy(probe(codes.detach()), labels).backward()
    optimizer_probe.step()
