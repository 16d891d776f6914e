"""SAM in an optimizer whose closure clears the gradient that the climb has used, then goes backward."""
# expects: nothing

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

    def closure(x=x):
        optimizer.zero_grad()
        loss = network(x).square().mean()
        loss.backward()
        return loss

    closure()
    optimizer.step(closure)
