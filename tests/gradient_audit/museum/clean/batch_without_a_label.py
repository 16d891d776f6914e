"""A batch without a label has a mean over nothing, which is NaN, and a gradient of zeros: no weight is lost."""
# expects: question nan at "    loss = "

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(10):
    x, labels = torch.randn(3, 4), torch.full((3,), -100) if step == 1 else torch.randint(2, (3,))
    loss = nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert model.weight.isfinite().all()
