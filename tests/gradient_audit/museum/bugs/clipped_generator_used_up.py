"""The optimizer has used up the generator of parameters, so that there is nothing left to clip."""
# expects: question clipped at "clip_grad_norm_("
# says: Clip after `backward()`.
# cure: "parameters = model.parameters()" -> "parameters = [*model.parameters()]"

import torch
from torch import nn

model = nn.Linear(4, 2)
parameters = model.parameters()
optimizer = torch.optim.Adam(parameters)

for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
