"""The decoder's loss encodes its samples after detach(): the term that should move the decoder does not reach it.

https://github.com/dragen1860/IntroVAE-Pytorch/issues/3
"""
# expects: error dead at "regularizer = encoder(xp.det"
# expects: waste wasted at "loss_decoder.backward()"
# cure: "regularizer = encoder(xp.detach())" -> "regularizer = encoder(xp)"
# cure: "loss_decoder.backward()" -> "loss_decoder.backward(inputs=list(decoder.parameters()))"

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
optim_encoder = torch.optim.Adam(encoder.parameters())
optim_decoder = torch.optim.Adam(decoder.parameters())

for _ in range(5):
    x, noise = torch.randn(5, 4), torch.randn(5, 2)
    z = encoder(x)
    xr = decoder(z.detach())
    xp = decoder(noise)
    loss_encoder = (decoder(z) - x).square().mean() + (1 - encoder(xp.detach()).square().mean()).relu()
    optim_encoder.zero_grad()
    loss_encoder.backward(inputs=list(encoder.parameters()))
    optim_encoder.step()

    regularizer = encoder(xp.detach()).square().mean()
    loss_decoder = 0.5 * (xr - x).square().mean() + regularizer
    optim_decoder.zero_grad()
    loss_decoder.backward()
    optim_decoder.step()
    optim_encoder.zero_grad()
