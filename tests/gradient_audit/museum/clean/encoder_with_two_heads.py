"""One optimizer over an encoder and two heads, a backward pass for each head, on the same codes."""
# expects: nothing

import torch
from torch import nn

encoder, classifier, decoder = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(3, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters(), *decoder.parameters()])

for _ in range(5):
    x, labels = torch.randn(5, 4), torch.randint(2, (5,))
    codes = encoder(x).tanh()
    optimizer.zero_grad()
    nn.functional.cross_entropy(classifier(codes), labels).backward(retain_graph=True)
    nn.functional.mse_loss(decoder(codes), x).backward()
    optimizer.step()
