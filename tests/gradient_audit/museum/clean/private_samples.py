"""Differential privacy: hooks keep the gradient of each sample, and the optimizer steps on their clipped, noisy sum."""
# expects: nothing

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # of a full hook on the first layer
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
inputs = {}


def keep_samples(layer, _, gradients):
    layer.weight.samples = torch.einsum("ni,nj->nij", gradients[0].detach(), inputs[layer])
    layer.bias.samples = gradients[0].detach()


for layer in (net[0], net[2]):
    layer.register_forward_hook(lambda layer, given, _: inputs.__setitem__(layer, given[0].detach()))
    layer.register_full_backward_hook(keep_samples)


class PrivateOptimizer(torch.optim.Optimizer):
    def __init__(self, original):
        self.original, self.defaults, self.state = original, original.defaults, original.state

    @property
    def param_groups(self):
        return self.original.param_groups

    def zero_grad(self, set_to_none=True):
        self.original.zero_grad(set_to_none)

    def step(self, closure=None):
        parameters = [p for group in self.param_groups for p in group["params"]]
        norms = torch.stack([p.samples.flatten(1).norm(dim=1) for p in parameters]).norm(dim=0)
        factor = (1 / (norms + 1e-6)).clamp(max=1)
        for p in parameters:
            total = torch.einsum("n,n...->...", factor, p.samples)
            p.grad = (total + 0.1 * torch.randn_like(p)) / len(factor)
        return self.original.step(closure)


optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1))

for _ in range(6):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
    optimizer.step()
