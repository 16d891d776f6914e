"""Adam is made anew in each iteration, so that its moments are lost: every step is a first step."""
# expects: question renewed at "optimizer = torch.optim.Adam("
# cure: "for _ in range(20):" -> "optimizer = torch.optim.Adam(model.parameters())\nfor _ in range(20):"
# cure: "    optimizer = torch.optim.Adam(model.parameters())\n" -> ""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 4)

for _ in range(20):
    optimizer = torch.optim.Adam(model.parameters())
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(4, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
