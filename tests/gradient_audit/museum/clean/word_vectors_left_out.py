"""Pretrained word vectors, left as they are, under layers that are trained: gradients for nothing, and no mistake."""
# expects: waste unfrozen at "loss.backward()"

import torch
from torch import nn

words, rnn, out = nn.Embedding(12, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
optimizer = torch.optim.Adam([*rnn.parameters(), *out.parameters()])
for _ in range(4):
    loss = out(rnn(words(torch.randint(0, 12, (6, 5))))[1][0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
