"""One optimizer over an encoder and a head, and each batch is taken twice: with its labels, and without."""
# expects: nothing

import torch
from torch import nn

encoder, head = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])

for _ in range(5):
    x, labels = torch.randn(5, 4), torch.randint(3, (5,))
    loss = nn.functional.cross_entropy(head(encoder(x)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    logits = head(encoder(x + 0.1 * torch.randn(5, 4)))
    entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1).mean()
    optimizer.zero_grad()
    entropy.backward()
    optimizer.step()
