"""zero_grad() is called for every microbatch, so that only the last one before a step counts.

https://github.com/bytetriper/RAE/issues/67
"""
# expects: question wasted at "    optimizer.zero_grad("
# cure: "optimizer.zero_grad(set_to_none=True)" -> "if step % 3 == 1:\n        optimizer.zero_grad(set_to_none=True)"

import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())

for step in range(1, 13):
    optimizer.zero_grad(set_to_none=True)
    latents = torch.randn(3, 4)
    loss = (model(latents) - latents).square().mean() / 3
    loss.backward()
    if step % 3 == 0:
        optimizer.step()
