"""The last bias of a WGAN critic has a gradient of exactly zero; it is clipped with the others, for many passes."""
# expects: nothing
# networks: generator, critic

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Linear(3, 4)
critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g, optimizer_d = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(6):
    for _ in range(8):
        with torch.no_grad():
            fake = generator(torch.randn(16, 3))
        optimizer_d.zero_grad()
        (critic(fake).mean() - critic(torch.randn(16, 4)).mean()).backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        optimizer_d.step()
    optimizer_g.zero_grad()
    (-critic(generator(torch.randn(16, 3))).mean()).backward(inputs=[*generator.parameters()])
    optimizer_g.step()
