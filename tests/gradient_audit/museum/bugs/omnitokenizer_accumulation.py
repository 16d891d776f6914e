"""Gradients are accumulated over batches, so that D's part of the autoencoder's loss is never cleared before D steps.

https://github.com/FoundationVision/OmniTokenizer/issues/15
"""
# expects: error mixed at "ae_loss.backward()"
# cure: "ae_loss.backward()" -> "ae_loss.backward(inputs=list(autoencoder.parameters()))"
# mistake: d-steps-on-g-loss

import torch
from torch import nn

autoencoder = nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 4))
discriminator = nn.Linear(4, 1)
optimizer_ae = torch.optim.Adam(autoencoder.parameters())
optimizer_disc = torch.optim.Adam(discriminator.parameters())

for step in range(1, 13):
    video = torch.randn(3, 4)
    decoded = autoencoder(video)
    ae_loss = (decoded - video).abs().mean() - discriminator(decoded).mean()
    ae_loss.backward()
    disc_loss = discriminator(decoded.detach()).relu().mean() + (1 - discriminator(video)).relu().mean()
    disc_loss.backward()
    if step % 2 == 0:
        for optimizer in (optimizer_ae, optimizer_disc):
            optimizer.step()
            optimizer.zero_grad()
