"""The adversarial term is weighted by two gradients of the last layer, read with torch.autograd.grad."""
# expects: nothing

import torch
from torch import nn

encoder, decoder, discriminator = nn.Linear(4, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 4)), nn.Linear(4, 1)
opt_ae = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
opt_disc = torch.optim.Adam(discriminator.parameters())
last_layer = decoder[-1].weight

for _ in range(5):
    x = torch.randn(5, 4)
    reconstruction = decoder(encoder(x))
    nll_loss = (reconstruction - x).abs().mean()
    discriminator.requires_grad_(False)
    g_loss = -discriminator(reconstruction).mean()
    (nll_grad,) = torch.autograd.grad(nll_loss, last_layer, retain_graph=True)
    (g_grad,) = torch.autograd.grad(g_loss, last_layer, retain_graph=True)
    weight = (nll_grad.norm() / (g_grad.norm() + 1e-4)).clamp(0.0, 1e4).detach()
    loss = nll_loss + 0.8 * weight * g_loss
    opt_ae.zero_grad()
    loss.backward()
    opt_ae.step()

    discriminator.requires_grad_(True)
    d_loss = (1 - discriminator(x)).relu().mean() + (1 + discriminator(reconstruction.detach())).relu().mean()
    opt_disc.zero_grad()
    d_loss.backward()
    opt_disc.step()
