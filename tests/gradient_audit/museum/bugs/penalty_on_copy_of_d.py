"""A penalty is computed on a copy of D that is made in the loop: its gradients go to the copy."""
# expects: error dead at "loss = loss + 5"
# cure: "copy.deepcopy(discriminator)" -> "discriminator"
# trains: discriminator

import copy

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
discriminator = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(discriminator.parameters())
for _ in range(10):
    real, fake = torch.randn(8, 8), torch.randn(8, 8) + 1
    x = real.clone().requires_grad_()
    (slope,) = torch.autograd.grad(copy.deepcopy(discriminator)(x).sum(), x, create_graph=True)
    loss = softplus(-discriminator(real)).mean() + softplus(discriminator(fake)).mean()
    loss = loss + 5 * slope.square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
