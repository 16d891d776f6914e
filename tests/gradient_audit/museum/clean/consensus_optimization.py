"""Consensus optimization (Mescheder et al., 2017): both networks also descend the norm of both losses' gradients.

This term belongs to both by definition: its gradient adds to the one that each loss gave its own network.
"""
# expects: nothing
# networks: G, D

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
G, D = (nn.Sequential(nn.Linear(size, 16), nn.LeakyReLU(0.2), nn.Linear(16, out)) for size, out in ((4, 2), (2, 1)))
weights_g, weights_d = [*G.parameters()], [*D.parameters()]
optimizer_g, optimizer_d = torch.optim.Adam(weights_g), torch.optim.Adam(weights_d)
for _ in range(6):
    real, fake = torch.randn(16, 2), G(torch.randn(16, 4))
    g_loss = softplus(-D(fake)).mean()
    d_loss = softplus(D(fake)).mean() + softplus(-D(real)).mean()
    gradients = [*torch.autograd.grad(g_loss, weights_g, create_graph=True)]
    gradients += torch.autograd.grad(d_loss, weights_d, create_graph=True)
    for weight, gradient in zip(weights_g + weights_d, gradients, strict=True):
        weight.grad = gradient.detach().clone()
    norm = sum(gradient.pow(2).sum() for gradient in gradients)
    (0.05 * norm).backward()
    optimizer_g.step()
    optimizer_d.step()
