"""The optimizer's step is left out, and the schedule's and zero_grad() are there: the script ends, and nothing trained.

https://github.com/tedlasai/learn2refocus/issues/5
"""
# expects: error idle at "loss.backward()"
# cure: "    lr_scheduler.step()" -> "    optimizer.step()\n    lr_scheduler.step()"
# trains: unet

import torch
from torch import nn

unet = nn.Linear(6, 6)
optimizer = torch.optim.AdamW(unet.parameters())
lr_scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer)

for _ in range(8):
    loss = (unet(torch.randn(8, 6)) - 1).square().mean()
    loss.backward()
    lr_scheduler.step()
    optimizer.zero_grad()
