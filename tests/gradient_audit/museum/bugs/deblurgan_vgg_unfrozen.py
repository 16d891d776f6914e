"""The network of the perceptual loss is not frozen: every pass computes gradients for it that nobody uses.

https://github.com/KupynOrest/DeblurGAN/issues/77
"""
# expects: waste unfrozen at "loss.backward()"
# cure: "nn.ReLU()).eval()" -> "nn.ReLU()).eval().requires_grad_(False)"

import torch
from torch import nn

generator = nn.Conv2d(1, 1, 3, padding=1)
features = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
optimizer = torch.optim.Adam(generator.parameters())

for _ in range(5):
    blurred, sharp = torch.randn(2, 1, 6, 6), torch.randn(2, 1, 6, 6)
    with torch.no_grad():
        wanted = features(sharp)
    loss = (features(generator(blurred)) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
