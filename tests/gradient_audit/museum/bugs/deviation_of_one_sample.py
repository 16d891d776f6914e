"""D sees the deviation within the batch; the last batch is one sample, whose std() is NaN: all weights are lost."""
# expects: error nan at "spread = features.std(dim=0)"
# cure: "batch_size=4" -> "batch_size=4, drop_last=True"

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch warns of it: degrees of freedom is <= 0
torch.manual_seed(0)
trunk, head = nn.Linear(4, 3), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()])
samples = torch.utils.data.DataLoader(torch.randn(9, 4), batch_size=4)

for _ in range(3):
    for batch in samples:
        features = trunk(batch).tanh()
        spread = features.std(dim=0)
        logits = head(torch.cat([features, spread.expand_as(features)], dim=1))
        optimizer.zero_grad()
        nn.functional.softplus(-logits).mean().backward()
        optimizer.step()
