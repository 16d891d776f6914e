"""A perceptual loss of shape (N, 1, 1, 1) is added to a loss per pixel, but was computed under no_grad."""
# expects: question dead at "with torch.no_grad():"
# cure: "    with torch.no_grad():\n        perceptual" -> "    perceptual"

import torch
from torch import nn

decoder, features = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 2, 3)
features.requires_grad_(False)
optimizer = torch.optim.Adam(decoder.parameters())

for _ in range(5):
    images = torch.randn(2, 1, 6, 6)
    decoded = decoder(images)
    pixels = (decoded - images).abs()
    with torch.no_grad():
        perceptual = (features(decoded) - features(images)).square().mean([1, 2, 3], keepdim=True)
    loss = pixels + perceptual
    optimizer.zero_grad()
    loss.mean().backward()
    optimizer.step()
