"""D steps between two passes of one graph by an old optimizer, which writes through `.data`: no error is raised.

No public report of it was found."""
# expects: error overwritten at "opt_D.step()"
# says: so PyTorch gives a wrong gradient and no error
# says: - tensor      `D.2.weight` and `D.0.weight`
# says: - written by  `"opt_D.step()"
# cure: "    opt_G.zero" -> "    g_loss = -D(G(torch.randn(6, 5))).mean()\n    opt_G.zero"

import torch
from torch import nn


class Plain(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.data.add_(parameter.grad, alpha=-group["lr"])


G = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
D = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_G, opt_D = Plain(G.parameters(), 0.1), Plain(D.parameters(), 0.1)

for _ in range(5):
    real, fake = D(torch.randn(6, 3)), D(G(torch.randn(6, 5)))
    d_loss, g_loss = fake.mean() - real.mean(), -fake.mean()
    opt_D.zero_grad()
    d_loss.backward(retain_graph=True, inputs=list(D.parameters()))
    opt_D.step()

    opt_G.zero_grad()
    g_loss.backward(inputs=list(G.parameters()))
    opt_G.step()
