"""A VAE as in Pyro's tutorial: SVI makes an optimizer for each parameter, and clears by new tensors of zeros."""
# package: pyro-ppl==1.9.2
# expects: nothing
# trains: 2

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import Adam
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 8))

    def model(self, x):
        pyro.module("decoder", self.decoder)
        with pyro.plate("data", x.shape[0]):
            z = pyro.sample("latent", dist.Normal(x.new_zeros(len(x), 4), x.new_ones(len(x), 4)).to_event(1))
            pyro.sample("obs", dist.Bernoulli(logits=self.decoder(z)).to_event(1), obs=x)

    def guide(self, x):
        pyro.module("encoder", self.encoder)
        with pyro.plate("data", x.shape[0]):
            z_loc, z_scale = self.encoder(x).chunk(2, dim=1)
            pyro.sample("latent", dist.Normal(z_loc, z_scale.exp()).to_event(1))


vae = VAE()
svi = SVI(vae.model, vae.guide, Adam({"lr": 1.0e-3}), loss=Trace_ELBO())
for _ in range(20):
    svi.step(torch.rand(8, 8).round())
