"""Two stages, the second on a leaf that holds the first one's output: its gradient is never cleared, and adds up."""
# expects: question stale at "losses.cross_entropy(second(middle), labels).backward()"
# cure: "    output.backward(middle.grad)" -> "    output.backward(middle.grad)\n    middle.grad = None"
# mistake: no-zero-grad

import torch
from torch import nn
from torch.nn import functional as losses

first, second = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 2)
optimizers = [torch.optim.Adam(network.parameters()) for network in (first, second)]
middle = torch.zeros(16, 8, requires_grad=True)
for _ in range(5):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    output = first(inputs)
    with torch.no_grad():
        middle.copy_(output)
    losses.cross_entropy(second(middle), labels).backward()
    output.backward(middle.grad)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
