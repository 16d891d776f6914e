"""DARTS, second order (Liu et al., 2019): a gradient is taken off another one by hand, and the sum is assigned."""
# expects: waste wasted at "cross_entropy(network(data), labels).backward()"
# networks: network, unrolled, network.alphas

import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))
        self.alphas = torch.zeros(3).requires_grad_()

    def forward(self, data):
        return sum(share * way(data) for share, way in zip(self.alphas.softmax(0), self.ways, strict=True))


torch.manual_seed(0)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), 0.05)
optimizer_alphas = torch.optim.Adam([network.alphas])
for _ in range(6):
    data, labels = torch.randn(16, 4), torch.randint(3, (16,))
    optimizer_alphas.zero_grad()
    unrolled = copy.deepcopy(network)
    cross_entropy(unrolled(data), labels).backward()
    gradient = unrolled.alphas.grad
    (curvature,) = torch.autograd.grad(cross_entropy(network(data), labels), [network.alphas])
    gradient.data.sub_(curvature, alpha=0.05)
    network.alphas.grad = gradient.clone()
    optimizer_alphas.step()
    optimizer.zero_grad()
    cross_entropy(network(data), labels).backward()
    optimizer.step()
