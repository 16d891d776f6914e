"""backward(create_graph=True) is for the slope at the images, and D steps on what it added to D's gradients."""
# expects: question reused at "d_loss.backward()"
# cure: "    d_loss =" -> "    optimizer_d.zero_grad()\n    d_loss ="

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of create_graph in backward()
generator = nn.Linear(3, 4)
discriminator = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    real, fake = torch.randn(5, 4, requires_grad=True), generator(torch.randn(5, 3))
    optimizer_d.zero_grad()
    discriminator(real).sum().backward(create_graph=True)
    penalty = real.grad.square().sum(dim=1).mean()
    d_loss = softplus(discriminator(fake.detach())).mean() + softplus(-discriminator(real)).mean() + 5 * penalty
    d_loss.backward()
    optimizer_d.step()

    g_loss = softplus(-discriminator(fake)).mean()
    optimizer_g.zero_grad()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_g.step()
