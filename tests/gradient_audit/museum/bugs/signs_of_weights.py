"""Layers compute with the signs of their weights, which have no slope: the biases learn, and no weight changes."""
# expects: question unreached at "optimizer.step()"
# says: 2 of the 4 parameters (0.weight, 2.weight) of network had a gradient of exactly zero at every step
# cure: "torch.sign(self.weight)" -> "self.weight + (torch.sign(self.weight) - self.weight).detach()"
# trains: network

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear


class Binary(nn.Linear):
    def forward(self, x):
        return linear(x, torch.sign(self.weight), self.bias)


torch.manual_seed(0)
network = nn.Sequential(Binary(6, 16), nn.Tanh(), Binary(16, 2))
optimizer = torch.optim.Adam(network.parameters())

for _ in range(8):
    x = torch.randn(16, 6)
    loss = cross_entropy(network(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
