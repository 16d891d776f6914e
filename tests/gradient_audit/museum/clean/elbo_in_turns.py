"""One loss for both halves of an autoencoder, in turns: in the decoder's, its second term moves nothing."""
# expects: waste wasted at "(recon + kl).backward()  # the decoder's turn"
# expects: waste wasted at "(recon + kl).backward()  # the encoder's turn"

import torch
from torch import nn

enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt_e, opt_d = torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())


def elbo(x):
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + torch.randn_like(mu) * (logvar / 2).exp()
    return nn.functional.mse_loss(dec(z), x), (logvar.exp() + mu**2 - 1 - logvar).sum(1).mean() / 2


for _ in range(4):
    x = torch.randn(8, 6)
    recon, kl = elbo(x)
    opt_e.zero_grad()
    opt_d.zero_grad()
    (recon + kl).backward()  # the decoder's turn
    opt_d.step()
    recon, kl = elbo(x)
    opt_e.zero_grad()
    opt_d.zero_grad()
    (recon + kl).backward()  # the encoder's turn
    opt_e.step()
