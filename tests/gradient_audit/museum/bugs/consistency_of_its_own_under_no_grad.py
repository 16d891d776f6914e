"""The consistency loss was moved under no_grad with both of its sides: it is added, and trains nothing."""
# expects: error dead at "with torch.no_grad():"
# cure: "        altered = model(" -> "    altered = model("
# cure: "        consistency = F.mse_loss" -> "    consistency = F.mse_loss"

import torch
from torch import nn
from torch.nn import functional as F

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())

for _ in range(20):
    x, labels = torch.randn(5, 4), torch.randint(4, (5,))
    plain = torch.randn(5, 4)
    with torch.no_grad():
        target = model(plain).softmax(1)
        altered = model(plain + 0.1 * torch.randn(5, 4)).softmax(1)
        consistency = F.mse_loss(altered, target)
    loss = F.cross_entropy(model(x), labels) + consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
