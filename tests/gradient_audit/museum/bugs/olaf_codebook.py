"""The codebook's loss is taken on the straight-through output, where the codebook is detached: it gets no gradient.

https://github.com/showlab/Olaf-World/issues/8
"""
# expects: error unreached at "return x + (code - x).detach"
# cure: "        return x + (" -> "        self.loss = (code - x.detach()).square().mean()\n        return x + ("
# cure: "(z_q - z_e.detach()).square().mean()" -> "vq.loss"
# trains: vq

import torch
from torch import nn


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codebook = nn.Embedding(8, 2)

    def forward(self, x):
        code = self.codebook(torch.cdist(x, self.codebook.weight).argmin(1))
        return x + (code - x).detach()


encoder, vq, decoder = nn.Linear(4, 2), Quantizer(), nn.Linear(2, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *vq.parameters(), *decoder.parameters()])
for _ in range(5):
    frames = torch.randn(6, 4)
    z_e = encoder(frames)
    z_q = vq(z_e)
    codebook_loss = (z_q - z_e.detach()).square().mean()
    loss = (decoder(z_q) - frames).square().mean() + codebook_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
