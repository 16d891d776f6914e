"""One optimizer has the weights of a network, another one its biases."""
# expects: nothing

import torch
from torch import nn

network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2))
matrices = [p for p in network.parameters() if p.ndim == 2]
vectors = [p for p in network.parameters() if p.ndim < 2]
optimizers = [torch.optim.SGD(matrices, lr=0.01, momentum=0.9), torch.optim.AdamW(vectors)]

for _ in range(6):
    network.zero_grad()
    network(torch.randn(8, 4)).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
