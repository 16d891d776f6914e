"""Optimizers that are not PyTorch's, as fastai has them; one line goes backward for both networks."""
# expects: waste graph at "opt_d)"
# networks: G, D
# says: | used | read

import torch


class SGD:
    def __init__(self, params):
        self.params = list(params)

    def step(self):
        with torch.no_grad():
            for p in self.params:
                p.add_(p.grad, alpha=-0.01)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def train(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


G, D = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
opt_g, opt_d = SGD(G.parameters()), SGD(D.parameters())
for i in range(40):
    if i % 6 < 5:
        train(D(G(torch.randn(6, 4)).detach()).mean() - D(torch.randn(6, 8)).mean(), opt_d)
    else:
        train(-D(G(torch.randn(6, 4))).mean(), opt_g)
