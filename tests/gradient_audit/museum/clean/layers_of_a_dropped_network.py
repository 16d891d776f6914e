"""A network is made of some layers of another, which is dropped: the audit keeps nothing in memory."""
# expects: nothing
# networks: net
# says: | 3x    | used |

import weakref

import torch
from torch import nn

dropped = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 9))
rest = weakref.ref(dropped[1])
net = nn.Sequential(dropped[0])
del dropped
assert rest() is None
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    optimizer.step()
