"""A reentrant checkpoint gives no gradient where none of its inputs needs one, as where it is the first block.

No public report of it was found.
"""
# expects: error unreached at "checkpoint(block,"
# cure: "use_reentrant=True" -> "use_reentrant=False"
# trains: block, head

import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")  # PyTorch warns of it
block, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], 0.1)
for _ in range(4):
    loss = head(checkpoint(block, torch.randn(8, 4), use_reentrant=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
