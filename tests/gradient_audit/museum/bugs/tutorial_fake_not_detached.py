"""D's loss goes back through G, whose gradients are then cleared: right, and half of the pass was for nothing.

https://github.com/yunjey/pytorch-tutorial/issues/56
"""
# expects: waste wasted at "d_loss.backward()"
# cure: "D(fake_images)" -> "D(fake_images.detach())"

import torch
from torch import nn

G, D = nn.Linear(3, 4), nn.Linear(4, 1)
g_optimizer = torch.optim.Adam(G.parameters(), lr=2e-4)
d_optimizer = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(5):
    images = torch.randn(5, 4)
    fake_images = G(torch.randn(5, 3))
    d_loss = bce(D(images), torch.ones(5, 1)) + bce(D(fake_images), torch.zeros(5, 1))
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()

    g_loss = bce(D(G(torch.randn(5, 3))), torch.ones(5, 1))
    g_optimizer.zero_grad()
    g_loss.backward(inputs=list(G.parameters()))
    g_optimizer.step()
