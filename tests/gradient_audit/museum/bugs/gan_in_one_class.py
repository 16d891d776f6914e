"""One class holds both networks, and one optimizer all parameters: D learns from G's loss to be deceived."""
# expects: question opposed at "    softplus(-gan.judge(fake)).mean().backward()"
# cure: "(fake)).mean().backward()" -> "(fake)).mean().backward(inputs=list(gan.make.parameters()))"

import torch
from torch import nn


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.make = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        self.judge = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


gan = GAN()
optimizer = torch.optim.Adam(gan.parameters())
softplus = nn.functional.softplus

for _ in range(5):
    with torch.no_grad():
        fake = gan.make(torch.randn(8, 3))
    optimizer.zero_grad()
    (softplus(gan.judge(fake)) + softplus(-gan.judge(torch.randn(8, 2)))).mean().backward()
    optimizer.step()
    fake = gan.make(torch.randn(8, 3))
    optimizer.zero_grad()
    softplus(-gan.judge(fake)).mean().backward()
    optimizer.step()
