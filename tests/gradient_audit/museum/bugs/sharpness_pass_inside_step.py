"""LookSAM: the step climbs and calls backward() itself, without clearing the gradient that the climb has used.

https://github.com/rollovd/LookSAM/issues/3
"""
# expects: question reused at "network(x).square().mean().backward()  # of the climbed weights"
# cure: "        with torch.enable_grad():" -> "        self.zero_grad()\n        with torch.enable_grad():"

import torch
from torch import nn

network = nn.Linear(6, 1)


class Look(torch.optim.Optimizer):
    def __init__(self, parameters, base, **settings):
        super().__init__(parameters, {"rho": 0.05})
        self.base = base(self.param_groups, **settings)

    @torch.no_grad()
    def step(self, x):
        for p in self.param_groups[0]["params"]:
            self.state[p]["before"] = p.detach().clone()
            p.add_(p.grad, alpha=self.param_groups[0]["rho"])
        with torch.enable_grad():
            network(x).square().mean().backward()  # of the climbed weights
        for p in self.param_groups[0]["params"]:
            p.copy_(self.state[p]["before"])
        self.base.step()


optimizer = Look(network.parameters(), torch.optim.SGD, lr=0.01)
for _ in range(5):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    network(x).square().mean().backward()
    optimizer.step(x)
