"""The README's loop with a miner: a triplet loss of the pairs that it finds."""
# package: pytorch-metric-learning==2.9.0
# expects: nothing
# trains: 1

import torch
from pytorch_metric_learning import losses, miners
from torch import nn

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
dataloader = [(torch.randn(16, 10), torch.randint(0, 4, (16,))) for _ in range(10)]

miner = miners.MultiSimilarityMiner()
loss_func = losses.TripletMarginLoss()
for data, labels in dataloader:
    optimizer.zero_grad()
    embeddings = model(data)
    hard_pairs = miner(embeddings, labels)
    loss = loss_func(embeddings, labels, hard_pairs)
    loss.backward()
    optimizer.step()
