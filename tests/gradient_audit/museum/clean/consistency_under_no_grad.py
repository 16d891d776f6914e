"""UDA: the answer to the plain text is a target, computed under no_grad; the answer to the altered text learns it."""
# expects: nothing

import torch
from torch import nn
from torch.nn import functional as F

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    labelled, labels = torch.randn(5, 4), torch.randint(4, (5,))
    plain = torch.randn(5, 4)
    altered = plain + 0.1 * torch.randn(5, 4)
    with torch.no_grad():
        target = F.softmax(model(plain) / 0.4, dim=1)
        sure = (target.amax(1) > 0.2).float()
    divergence = F.kl_div(F.log_softmax(model(altered), dim=1), target, reduction="none").sum(1)
    loss = F.cross_entropy(model(labelled), labels) + (sure * divergence).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
