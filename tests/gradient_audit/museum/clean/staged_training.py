"""The second stage comes after four hundred steps: its optimizer waits, while its parameters get gradients."""
# expects: question idle at "loss.backward()"

import torch
from torch import nn

encoder, classifier = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer_first = torch.optim.Adam(encoder.parameters())
optimizer_second = torch.optim.Adam(classifier.parameters())

for epoch in range(40):
    optimizer = optimizer_first if epoch < 20 else optimizer_second
    for _ in range(20):
        loss = nn.functional.cross_entropy(classifier(encoder(torch.randn(5, 4))), torch.randint(4, (5,)))
        optimizer_first.zero_grad()
        optimizer_second.zero_grad()
        loss.backward()
        optimizer.step()
