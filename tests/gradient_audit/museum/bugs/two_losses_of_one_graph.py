"""An encoder's codes serve two losses, each with its backward pass: the first frees the graph of the codes."""
# expects: error freed at "    loss_a.backward()"
# expects: mistake second-backward at "loss_b.backward()"
# says: freed by
# says: wanted by
# cure: "    loss_a.backward()\n    loss_b.backward()" -> "    (loss_a + loss_b).backward()"

import torch
from torch import nn

encoder, head_a, head_b = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), nn.Linear(3, 2), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head_a.parameters(), *head_b.parameters()])

for _ in range(5):
    codes = encoder(torch.randn(5, 4))
    loss_a, loss_b = head_a(codes).square().mean(), head_b(codes).abs().mean()
    optimizer.zero_grad()
    loss_a.backward()
    loss_b.backward()
    optimizer.step()
