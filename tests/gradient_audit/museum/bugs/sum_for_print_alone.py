"""The sum of reconstruction and sparsity is only logged; the loss that goes backward is the reconstruction alone."""
# expects: question unused at "total = rebuilt + 0.01 * hidden"
# cure: "return rebuilt, " -> "return total, "
# trains: network

import torch
from torch import nn

network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
optimizer = torch.optim.Adam(network.parameters())


def losses(x):
    hidden = network[0](x)
    rebuilt = (network[2](network[1](hidden)) - x).square().mean()
    total = rebuilt + 0.01 * hidden.abs().mean()
    return rebuilt, {"total": total.item()}


for _ in range(5):
    loss, shown = losses(torch.randn(16, 6))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
