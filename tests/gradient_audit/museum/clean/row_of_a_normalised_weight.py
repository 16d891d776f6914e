"""A parametrization reads a row of the weight for its length: the row is no loss of samples that nothing takes."""
# expects: nothing

import torch
from torch import nn
from torch.nn.utils import parametrize


class Normalised(nn.Module):
    def forward(self, weight):
        return weight * (weight[0].numel() ** 0.5 / weight.norm())


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
for layer in (net[0], net[2]):
    parametrize.register_parametrization(layer, "weight", Normalised())
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    one, two = net(torch.randn(8, 3)), net(torch.randn(8, 3))
    loss = nn.functional.softplus(one - two).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
