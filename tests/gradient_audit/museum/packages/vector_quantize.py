"""An autoencoder with a VectorQuantize layer, as in its examples/autoencoder.py."""
# package: vector-quantize-pytorch==1.32.0
# expects: nothing

import torch
from torch import nn
from vector_quantize_pytorch import VectorQuantize

alpha = 10


class SimpleVQAutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
        self.vq = VectorQuantize(dim=8, codebook_size=32, decay=0.8, commitment_weight=1.0)
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        quantized, indices, commit_loss = self.vq(self.encoder(x))
        return self.decoder(quantized).clamp(-1, 1), indices, commit_loss


model = SimpleVQAutoEncoder()
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
for _ in range(20):
    x = torch.rand(4, 10, 16) * 2 - 1
    opt.zero_grad()
    out, indices, cmt_loss = model(x)
    rec_loss = (out - x).abs().mean()
    (rec_loss + alpha * cmt_loss).backward()
    opt.step()
