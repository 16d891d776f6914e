"""The evaluation switches graphs off, and nothing switches them on again: the next epoch has none."""
# expects: error dead at "torch.set_grad_enabled(False)"
# expects: mistake no-graph at "loss.backward()"
# cure: "    torch.set_grad_enabled(False)" -> "    torch.set_grad_enabled(True)"

import torch
from torch import nn

network = nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)


def evaluate():
    torch.set_grad_enabled(False)
    return network(torch.randn(8, 4)).mean()


for _ in range(4):
    loss = network(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    evaluate()
