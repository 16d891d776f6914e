"""The perceptual and the style loss get G's image through `.data`: neither reaches G, and nobody trains their network.

https://github.com/alterzero/DBPN-Pytorch/issues/37
"""
# expects: error dead at "recon_VGG = "
# expects: waste unfrozen at "real, fake = "
# cure: "recon_image.data" -> "recon_image"
# cure: "mse = nn" -> "features.requires_grad_(False)\nmse = nn"
# cure: "G_loss.backward()" -> "G_loss.backward(inputs=list(model.parameters()))"
# mistake: detached-fakes

import torch
from torch import nn

model, features = nn.Linear(4, 8), nn.Linear(8, 4)
mse = nn.functional.mse_loss
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for _ in range(5):
    source, target = torch.rand(4, 4), torch.rand(4, 8)
    recon_image = model(source)
    recon_VGG = recon_image.data
    real, fake = features(target).detach(), features(recon_VGG)
    vgg_loss, style_loss = mse(fake, real), mse(fake.T @ fake, real.T @ real)
    G_loss = mse(recon_image, target) + 0.1 * vgg_loss + 10 * style_loss
    optimizer.zero_grad()
    G_loss.backward()
    optimizer.step()
