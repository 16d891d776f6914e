"""One optimizer: an autoencoder's loss, one of its decoder alone, on noise, and a probe that is fed fixed codes."""
# expects: nothing

import torch
from torch import nn

encoder, decoder, probe = (nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *probe.parameters()])

for _ in range(5):
    x = torch.randn(8, 4)
    code = encoder(x)
    optimizer.zero_grad()
    ((decoder(code) - x).square().mean() + probe(code.detach()).square().mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
    decoder(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        code = encoder(x)
    probe(code).square().mean().backward()
    optimizer.step()
