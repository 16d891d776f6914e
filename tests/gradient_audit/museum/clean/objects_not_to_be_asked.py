"""Variables that raise if they are printed or asked for anything, and a network with its own parameters()."""
# expects: nothing
# networks: net
# says: | 3x    | used |

import torch
from torch import nn


class Key:
    def __repr__(self):
        raise RuntimeError("printed")


class Hostile:
    def __getattr__(self, name):
        raise ZeroDivisionError(name)


class Own(nn.Sequential):
    def __bool__(self):
        raise RuntimeError("no truth value")

    def parameters(self):
        return [parameter for layer in self for parameter in layer.parameters()]


net = Own(nn.Linear(2, 2), nn.Linear(2, 2))
things, hostile = {Key(): net, 1: net}, Hostile()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    optimizer.step()
