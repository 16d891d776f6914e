"""Embeddings are computed once, before the loop, with `retain_graph=True`: the loss never sees them change."""
# expects: question outdated at "codes = embedding"
# cure: "codes = embedding(torch.arange(4))" -> ""
# cure: "    condition = codes[" -> "    condition = embedding(torch.arange(4))["
# trains: generator, embedding

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
embedding = nn.Embedding(4, 4)
generator = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam([*generator.parameters(), *embedding.parameters()], 1e-2)
codes = embedding(torch.arange(4))
for _ in range(8):
    condition = codes[torch.arange(16) % 4]
    loss = mse_loss(generator(torch.cat([torch.randn(16, 8), condition], 1)), torch.ones(16, 6))
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
