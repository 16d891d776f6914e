"""The straight-through estimator: a value enters as a constant and once more with its graph."""
# expects: nothing

import torch
from torch import nn

encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])

for _ in range(5):
    features = torch.randn(8, 4)
    soft = encoder(features).softmax(1)
    hard = nn.functional.one_hot(soft.argmax(1), 3) - soft.detach() + soft
    loss = nn.functional.mse_loss(decoder(hard), features)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
