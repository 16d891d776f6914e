"""The optimizer of the shared VAE gets the parameters of its encoder, and not those of its decoder.

https://github.com/zdebruine/MMVAE/issues/39
"""
# expects: error ownerless at "vae = SharedVAE()"
# cure: "vae.encoder.parameters()" -> "vae.parameters()"
# trains: vae

import torch
from torch import nn


class SharedVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(z), mean, log_variance


vae = SharedVAE()
optimizer = torch.optim.Adam(vae.encoder.parameters())
for _ in range(5):
    cells = torch.randn(5, 6)
    decoded, mean, log_variance = vae(cells)
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).mean()
    loss = (decoded - cells).square().mean() + kl
    vae.zero_grad()
    loss.backward()
    optimizer.step()
