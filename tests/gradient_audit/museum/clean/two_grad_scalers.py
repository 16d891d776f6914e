"""A loss scale for each network, gradients unscaled and clipped before each step."""
# expects: nothing
# networks: generator, discriminator

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizers = [torch.optim.Adam(network.parameters()) for network in (discriminator, generator)]
scaler_d, scaler_g = (torch.amp.GradScaler("cpu", init_scale=128.0) for _ in range(2))

for _ in range(5):
    real, z = torch.randn(5, 4), torch.randn(5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        fake = generator(z)
        d_loss = discriminator(fake.detach()).mean() - discriminator(real).mean()
    optimizers[0].zero_grad()
    scaler_d.scale(d_loss).backward()
    scaler_d.unscale_(optimizers[0])
    nn.utils.clip_grad_norm_(discriminator.parameters(), 1.0)
    scaler_d.step(optimizers[0])
    scaler_d.update()

    with torch.autocast("cpu", torch.bfloat16):
        g_loss = -discriminator(fake).mean()
    optimizers[1].zero_grad()
    scaler_g.scale(g_loss).backward(inputs=list(generator.parameters()))
    scaler_g.unscale_(optimizers[1])
    nn.utils.clip_grad_norm_(generator.parameters(), 1.0)
    scaler_g.step(optimizers[1])
    scaler_g.update()
