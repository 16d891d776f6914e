"""A corrupt sample makes the gradient NaN: its step is left out, and its gradient cleared."""
# expects: question nan at "    loss = "
# expects: waste wasted at "loss.backward()"

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(10):
    x, labels = torch.randn(3, 4), torch.randint(2, (3,))
    if step == 1:
        x[0, 2] = float("nan")
    loss = nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm.isfinite():
        optimizer.step()
