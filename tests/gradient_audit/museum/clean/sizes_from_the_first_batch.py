"""The layers of a network get their sizes from their first batch, which comes after others have trained."""
# expects: nothing
# networks: lazy, eager
# says: | 3x    | used | used  |

import torch
from torch import nn

lazy, eager = nn.LazyLinear(1), nn.Linear(2, 2)
optimizer = torch.optim.SGD([*eager.parameters(), *lazy.parameters()], lr=0.1)

for _ in range(5):
    optimizer.zero_grad()
    eager(torch.ones(1, 2)).sum().backward()
    lazy(eager(torch.ones(1, 2))).sum().backward()
    optimizer.step()
