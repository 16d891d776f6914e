"""The slope at the images by backward(create_graph=True); what it added to D's gradients is cleared before D's pass."""
# expects: waste wasted at "discriminator(real).sum().backward("

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of create_graph in backward()
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    real, fake = torch.randn(5, 4, requires_grad=True), torch.randn(5, 4)
    discriminator(real).sum().backward(create_graph=True)
    penalty = real.grad.square().sum(dim=1).mean()
    d_loss = softplus(discriminator(fake)).mean() + softplus(-discriminator(real)).mean() + 5 * penalty
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
