"""The perceptual loss compares features that a hook has recorded and detached: it is a constant.

https://github.com/myscience/open-genie/issues/6
"""
# expects: question dead at "vgg[1].register_forward_hook"
# cure: "recorded.append(output.detach())" -> "recorded.append(output)"

import torch
from torch import nn

tokenizer = nn.Linear(4, 4)
vgg = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).requires_grad_(False)
optimizer = torch.optim.Adam(tokenizer.parameters())
recorded = []
vgg[1].register_forward_hook(lambda module, inputs, output: recorded.append(output.detach()))

for _ in range(5):
    video = torch.randn(3, 4)
    decoded = tokenizer(video)
    recorded.clear()
    vgg(video)
    vgg(decoded)
    perceptual = (recorded[0] - recorded[1]).square().mean()
    loss = (decoded - video).square().mean() + perceptual
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
