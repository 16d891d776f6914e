"""A network and its copy, on inputs whose name the terminal has no letters for."""
# expects: nothing
# networks: first, second
# says: | 3x    | used  | used   |

import copy
import sys

import torch
from torch import nn

sys.stdout.reconfigure(encoding="ascii")
输入 = torch.randn(1, 2, 4)
first = nn.TransformerEncoderLayer(4, 1, 4)
second = copy.deepcopy(first)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    second(first(输入)).square().sum().backward()
    optimizer.step()
