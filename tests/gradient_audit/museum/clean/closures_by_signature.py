"""Optimizers whose step() calls its closure otherwise, and takes it second: what it computes is used."""
# expects: nothing
# says: | 3x    | used       | -

import torch
from torch import nn


class NamesItsClosureFn(torch.optim.SGD):
    def step(self, fn):
        return super().step(fn)


class TakesItsClosureSecond(torch.optim.SGD):
    def step(self, weight, closure):
        return super().step(closure)


networks = nn.ModuleList(nn.Linear(2, 1) for _ in range(4))
first, second = (NamesItsClosureFn(network.parameters(), lr=0.1) for network in networks[:2])
third, fourth = (TakesItsClosureSecond(network.parameters(), lr=0.1) for network in networks[2:])


def closure_of(network):
    def closure():
        network.zero_grad()
        loss = network(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    return closure


for _ in range(5):
    first.step(closure_of(networks[0]))
    second.step(fn=closure_of(networks[1]))
    third.step(1.0, closure_of(networks[2]))
    fourth.step(closure=closure_of(networks[3]), weight=1.0)
