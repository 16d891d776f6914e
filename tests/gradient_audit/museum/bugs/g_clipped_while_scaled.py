"""D's gradients are unscaled before they are clipped; in the step of G that line was forgotten."""
# expects: error scaled at "clip_grad_norm_(generator.parameters(), 5.0)"
# cure: "    nn.utils.clip_grad_norm_(gen" -> "    scaler.unscale_(optimizer_g)\n    nn.utils.clip_grad_norm_(gen"

import torch
from torch import nn

generator, discriminator = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(5, 4)).mean()
    optimizer_d.zero_grad()
    scaler.scale(d_loss).backward()
    scaler.unscale_(optimizer_d)
    nn.utils.clip_grad_norm_(discriminator.parameters(), 5.0)
    scaler.step(optimizer_d)

    optimizer_g.zero_grad()
    g_loss = scaler.scale(-discriminator(fake).mean())
    g_loss.backward(inputs=list(generator.parameters()))
    nn.utils.clip_grad_norm_(generator.parameters(), 5.0)
    scaler.step(optimizer_g)
    scaler.update()
