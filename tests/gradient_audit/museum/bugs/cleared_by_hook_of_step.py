"""A hook clears gradients before each step of G, where one after each step was meant: G never moves."""
# expects: error unreached at "lambda optimizer, *_: optimizer.zero_grad()"
# cure: "register_step_pre_hook" -> "register_step_post_hook"

import torch
from torch import nn
from torch.nn import functional as losses

generator, discriminator = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_g, optimizer_d = (torch.optim.AdamW(network.parameters()) for network in (generator, discriminator))
optimizer_g.register_step_pre_hook(lambda optimizer, *_: optimizer.zero_grad())
for _ in range(5):
    fake = generator(torch.randn(6, 4))
    optimizer_d.zero_grad()
    scores = [discriminator(images) for images in (torch.randn(6, 2), fake.detach())]
    (losses.softplus(-scores[0]).mean() + losses.softplus(scores[1]).mean()).backward()
    optimizer_d.step()
    losses.softplus(-discriminator(fake)).mean().backward(inputs=[*generator.parameters()])
    optimizer_g.step()
