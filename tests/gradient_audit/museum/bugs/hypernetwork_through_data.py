"""A network makes another one's weights; written through `.data`, they have no graph that leads back to it."""
# expects: error ownerless at "target = nn.Linear(3, 1)"
# cure: "        parameter.data = weights[name]" -> "        pass"
# cure: "target(x)" -> "torch.func.functional_call(target, weights, (x,))"

import torch
from torch import nn

target = nn.Linear(3, 1)
maker = nn.Linear(5, 4)
optimizer = torch.optim.Adam(maker.parameters())

for _ in range(6):
    made = maker(torch.randn(5))
    weights = {"weight": made[:3].view(1, 3), "bias": made[3:]}
    for name, parameter in target.named_parameters():
        parameter.data = weights[name]
    x = torch.randn(8, 3)
    loss = (target(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
