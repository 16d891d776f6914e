"""D's losses on real and on fake images go backward, and so does their sum, which was meant for the curves."""
# expects: question doubled at "loss.backward()"
# cure: "    loss.backward()" -> ""
# trains: discriminator

import torch
from torch import nn
from torch.nn.functional import softplus

torch.manual_seed(0)
discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(discriminator.parameters(), 0.01)
for _ in range(8):
    real, fake = torch.randn(32, 2), torch.randn(32, 2) + 1
    optimizer.zero_grad()
    loss_real = softplus(-discriminator(real)).mean()
    loss_real.backward(retain_graph=True)
    loss_fake = softplus(discriminator(fake)).mean()
    loss_fake.backward(retain_graph=True)
    loss = loss_real + loss_fake
    loss.backward()
    optimizer.step()
