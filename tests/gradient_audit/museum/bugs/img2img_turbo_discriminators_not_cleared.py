"""G's adversarial loss fills the gradients of two discriminators, and nobody clears them before their first step.

https://github.com/GaParmar/img2img-turbo/issues/56
"""
# expects: error mixed at "loss_gan.backward()"
# expects: waste wasted at "loss_gan.backward()"
# says: net_disc_a and net_disc_b
# cure: "loss_gan.backward()" -> "loss_gan.backward(inputs=list(a2b.parameters()) + list(b2a.parameters()))"
# mistake: d-steps-on-g-loss

import torch
from torch import nn

a2b, b2a, net_disc_a, net_disc_b = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 1), nn.Linear(6, 1)
optimizer_gen = torch.optim.AdamW([*a2b.parameters(), *b2a.parameters()], lr=1e-3)
optimizer_disc = torch.optim.AdamW([*net_disc_a.parameters(), *net_disc_b.parameters()], lr=1e-3)
softplus = nn.functional.softplus

for _ in range(5):
    img_a, img_b = torch.randn(4, 6), torch.randn(4, 6)
    fake_a, fake_b = b2a(img_b), a2b(img_a)
    loss_gan = softplus(-net_disc_a(fake_a)).mean() + softplus(-net_disc_b(fake_b)).mean()
    loss_gan.backward()
    optimizer_gen.step()
    optimizer_gen.zero_grad()

    loss_fake = softplus(net_disc_a(fake_a.detach())).mean() + softplus(net_disc_b(fake_b.detach())).mean()
    loss_fake.backward()
    optimizer_disc.step()
    optimizer_disc.zero_grad()
    loss_real = softplus(-net_disc_a(img_a)).mean() + softplus(-net_disc_b(img_b)).mean()
    loss_real.backward()
    optimizer_disc.step()
    optimizer_disc.zero_grad()
