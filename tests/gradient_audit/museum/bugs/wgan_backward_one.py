"""The sign of each loss is a tensor of shape (1,), and the losses have shape ().

https://github.com/jalola/improved-wgan-pytorch/issues/11
"""
# expects: mistake backward-one at "disc_real.backward(mone)"
# cure: "torch.FloatTensor([1])" -> "torch.tensor(1.0)"

import torch
from torch import nn

a_generator, a_critic = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer_g = torch.optim.Adam(a_generator.parameters())
optimizer_d = torch.optim.Adam(a_critic.parameters())
one = torch.FloatTensor([1])
mone = one * -1

for _ in range(5):
    a_critic.zero_grad()
    disc_real = a_critic(torch.randn(5, 4)).mean()
    disc_real.backward(mone)
    disc_fake = a_critic(a_generator(torch.randn(5, 3)).detach()).mean()
    disc_fake.backward(one)
    optimizer_d.step()

    a_generator.zero_grad()
    gen_cost = a_critic(a_generator(torch.randn(5, 3))).mean()
    gen_cost.backward(mone)
    optimizer_g.step()
