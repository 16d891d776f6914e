"""SAM in an optimizer: its step climbs, then calls a closure that adds to the gradient that the climb has used."""
# expects: question reused at "optimizer.step(lambda"
# cure: "            closure()" -> "            self.zero_grad()\n            closure()"

import torch
from torch import nn

network = nn.Linear(6, 1)


class Sharp(torch.optim.Optimizer):
    def __init__(self, parameters, base, **settings):
        super().__init__(parameters, {"rho": 0.05})
        self.base = base(self.param_groups, **settings)

    @torch.no_grad()
    def step(self, closure):
        for p in self.param_groups[0]["params"]:
            self.state[p]["before"] = p.detach().clone()
            p.add_(p.grad, alpha=self.param_groups[0]["rho"])
        with torch.enable_grad():
            closure()
        for p in self.param_groups[0]["params"]:
            p.copy_(self.state[p]["before"])
        self.base.step()


optimizer = Sharp(network.parameters(), torch.optim.SGD, lr=0.01)
for _ in range(5):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    network(x).square().mean().backward()
    optimizer.step(lambda: network(x).square().mean().backward())
