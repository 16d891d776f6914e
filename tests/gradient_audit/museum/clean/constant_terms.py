"""Numbers in a loss: a margin, a floor, a weight that is 0 in the first step, a term that is 0 for now."""
# expects: nothing

import torch
from torch import nn

encoder_decoder = nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 4))
optimizer = torch.optim.Adam(encoder_decoder.parameters())

for step in range(5):
    x = torch.randn(5, 4)
    code = encoder_decoder[:2](x)
    auxiliary = torch.zeros(())
    reconstruction = (encoder_decoder[2](code) - x).square().mean()
    loss = reconstruction + 0.1 * step * (1.5 - code.square().mean()).relu() - 0.25 + auxiliary
    loss = loss + 0.1 * (torch.ones_like(code) - code).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
