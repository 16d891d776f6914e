"""A script with one loss in all, for an encoder and a head of different optimizers: it is for whom it moves."""
# expects: nothing

import torch
from torch import nn

encoder, head = nn.Linear(4, 8), nn.Linear(8, 2)
opt_encoder = torch.optim.SGD(encoder.parameters(), lr=0.01)
opt_head = torch.optim.Adam(head.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(head(encoder(torch.randn(6, 4)).relu()), torch.randint(2, (6,)))
    opt_encoder.zero_grad()
    opt_head.zero_grad()
    loss.backward()
    opt_encoder.step()
    opt_head.step()
