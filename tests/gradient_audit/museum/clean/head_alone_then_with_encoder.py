"""A head learns on fixed features of balanced data, then with the encoder on all data: both losses are for it."""
# expects: question meant? at "    loss.backward()"

import torch
from torch import nn

encoder, head = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 3)
optimizer_e, optimizer_h = torch.optim.Adam(encoder.parameters()), torch.optim.Adam(head.parameters())

for _ in range(5):
    balanced, classes = torch.randn(6, 4), torch.arange(6) % 3
    with torch.no_grad():
        features = encoder(balanced)
    optimizer_h.zero_grad()
    nn.functional.cross_entropy(head(features), classes).backward()
    optimizer_h.step()

    x, labels = torch.randn(5, 4), torch.randint(3, (5,))
    loss = nn.functional.cross_entropy(head(encoder(x)), labels)
    optimizer_h.zero_grad()
    optimizer_e.zero_grad()
    loss.backward()
    optimizer_h.step()
    optimizer_e.step()
