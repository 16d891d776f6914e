"""The parameters to clip are a generator made before the loop: only the first step's gradients are clipped."""
# expects: question clipped at "nn.utils.clip_grad_norm_(parameters, 0.1)"
# cure: "parameters = network.parameters()" -> "parameters = list(network.parameters())"

import torch
from torch import nn

network = nn.Linear(6, 3)
parameters = network.parameters()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(6):
    loss = nn.functional.cross_entropy(network(torch.randn(8, 6)), torch.randint(3, (8,)))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 0.1)
    optimizer.step()
