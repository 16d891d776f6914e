"""The optimizer holds copies in float32 that require no gradient: the script assigns theirs, and copies them back."""
# expects: nothing

import torch
from torch import nn

network = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2)).bfloat16()
masters = [p.detach().clone().float() for p in network.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.1)

for _ in range(5):
    network.zero_grad()
    logits = network(torch.randn(8, 4, dtype=torch.bfloat16)).float()
    nn.functional.cross_entropy(logits, torch.randint(0, 2, (8,))).backward()
    for master, p in zip(masters, network.parameters(), strict=True):
        master.grad = p.grad.float()
    optimizer.step()
    with torch.no_grad():
        for master, p in zip(masters, network.parameters(), strict=True):
            p.copy_(master)
