"""After two steps all parameters of a layer are replaced by smaller ones; the optimizer goes on with the old ones.

No public report of it was found.
"""
# expects: error ownerless at "layer.weight = "
# expects: question unreached at "optimizer.step()"
# says: steps of an optimizer found no gradient.
# cure: "bias.detach() * 0.1)" -> "bias.detach() * 0.1)\n        optimizer = torch.optim.Adam(layer.parameters())"
# trains: layer

import torch
from torch import nn

layer = nn.Linear(6, 1)
optimizer = torch.optim.Adam(layer.parameters())
for i in range(8):
    loss = layer(torch.randn(4, 6)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i == 1:
        layer.weight = nn.Parameter(layer.weight.detach() * 0.1)
        layer.bias = nn.Parameter(layer.bias.detach() * 0.1)
