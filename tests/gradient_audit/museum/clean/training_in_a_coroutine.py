"""The loop runs in a coroutine."""
# expects: nothing
# says: | 3x    | used |

import asyncio

import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


async def train():
    for _ in range(5):
        optimizer.zero_grad()
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()


asyncio.run(train())
