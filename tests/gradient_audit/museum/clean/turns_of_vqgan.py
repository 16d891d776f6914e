"""A VQ-GAN whose trainer runs the autoencoder in G's turn and in D's: in D's, nothing uses the quantizer's loss.

After taming-transformers (`VQModel.training_step` with `optimizer_idx`); Esser et al., 2021.
"""
# expects: nothing
# networks: encoder, decoder, discriminator

import torch
from torch import nn
from torch.nn.functional import relu

torch.manual_seed(0)
encoder, decoder, discriminator = nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(8, 1)
optimizer_g = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
optimizer_d = torch.optim.Adam(discriminator.parameters())
for _ in range(8):
    for turn in ("g", "d"):
        real = torch.randn(16, 8)
        code = encoder(real)
        commitment = (code - code.detach().round()).square().mean()
        fake = decoder(code)
        if turn == "g":
            loss = (real - fake).abs().mean() - discriminator(fake).mean() + commitment
            optimizer_g.zero_grad()
            loss.backward(inputs=[*encoder.parameters(), *decoder.parameters()])
            optimizer_g.step()
        else:
            loss = relu(1 - discriminator(real)).mean() + relu(1 + discriminator(fake.detach())).mean()
            optimizer_d.zero_grad()
            loss.backward()
            optimizer_d.step()
