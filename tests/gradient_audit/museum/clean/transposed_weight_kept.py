"""A decoder's weight is a view of the embedding's, taken once, before the loop: a step changes both."""
# expects: nothing
# networks: embedding

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
embedding = nn.Embedding(6, 4)
decoder = embedding.weight.t()
optimizer = torch.optim.SGD(embedding.parameters(), 0.1, fused=True)
for _ in range(6):
    words = torch.randint(6, (16,))
    loss = cross_entropy(embedding(words) @ decoder, words)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
