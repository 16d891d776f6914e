"""The tutorial clears G's gradients and never D's: D steps on all its gradients so far, those of G's loss included.

https://github.com/Project-MONAI/GenerativeModels/issues/102
"""
# expects: error stale at "generator_loss.backward()"
# cure: "    discriminator_loss.backward()" -> "    optimizer_d.zero_grad()\n    discriminator_loss.backward()"
# cure: "generator_loss.backward()" -> "generator_loss.backward(inputs=list(model.parameters()))"
# mistake: no-zero-grad

import torch
from torch import nn

model, discriminator = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(model.parameters(), 1e-4)
optimizer_d = torch.optim.Adam(discriminator.parameters(), 5e-4)

for _ in range(5):
    images = torch.randn(2, 4)
    optimizer_g.zero_grad()
    reconstruction = model(images)
    generator_loss = (reconstruction - images).abs().mean() + 0.01 * (discriminator(reconstruction) - 1).square().mean()
    generator_loss.backward()
    optimizer_g.step()

    fake = discriminator(reconstruction.detach()).square().mean()
    discriminator_loss = fake + (discriminator(images) - 1).square().mean()
    discriminator_loss.backward()
    optimizer_d.step()
