"""The weights of the losses fall with the losses themselves, whose graphs they keep from step to step."""
# expects: waste kept at "alpha = alpha * "
# cure: "0.99**loss" -> "0.99**loss.detach()"
# trains: net

import torch
from torch import nn

net, alpha = nn.Linear(4, 2), torch.ones(2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(8):
    loss = net(torch.randn(8, 4)).square().mean(0)
    optimizer.zero_grad()
    (alpha.detach() * loss).sum().backward()
    optimizer.step()
    alpha = alpha * 0.99**loss
