"""Terms of a loss are stacked and summed, and one of them is cut off."""
# expects: question dead at "second = network(x).detach()"
# cure: ".detach()" -> ""
# trains: network

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(16, 6)
    main = mse_loss(network(x), x[:, :2])
    second = network(x).detach().square().mean()
    loss = torch.stack([main, second]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
