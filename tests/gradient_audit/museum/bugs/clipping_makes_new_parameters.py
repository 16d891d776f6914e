"""WGAN's clipping puts new parameters into the critic after each step: its optimizer holds the first ones."""
# expects: error ownerless at "layer.weight = nn.Parameter(layer.weight.clamp(-0.05, 0.05))"
# cure: "layer.weight = nn.Parameter(layer.weight.clamp(-0.05, 0.05))" -> "layer.weight.data.clamp_(-0.05, 0.05)"

import torch
from torch import nn
from torch.optim import RMSprop

generator = nn.Linear(4, 8)
critic = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g, optimizer_d = RMSprop(generator.parameters(), 5e-5), RMSprop(critic.parameters(), 5e-5)
for _ in range(20):
    fake = generator(torch.randn(8, 4))
    optimizer_d.zero_grad()
    (critic(fake.detach()).mean() - critic(torch.randn(8, 8)).mean()).backward()
    optimizer_d.step()
    for layer in (critic[0], critic[2]):
        layer.weight = nn.Parameter(layer.weight.clamp(-0.05, 0.05))
    optimizer_g.zero_grad()
    (-critic(fake).mean()).backward(inputs=list(generator.parameters()))
    optimizer_g.step()
