"""After D's losses the optimizer of G steps once more; D's optimizer never does.

https://github.com/Lornatang/ESRGAN-PyTorch/issues/39
"""
# expects: error stale at "g_optimizer.step()  # again"
# cure: "g_optimizer.step()  # again" -> "d_optimizer.step()"
# trains: d_model

import torch
from torch import nn

g_model, d_model = nn.Linear(4, 4), nn.Linear(4, 1)
g_optimizer = torch.optim.Adam(g_model.parameters())
d_optimizer = torch.optim.Adam(d_model.parameters())
bce = nn.functional.binary_cross_entropy_with_logits

for _ in range(12):
    low, high = torch.randn(2, 4), torch.randn(2, 4)
    g_optimizer.zero_grad()
    sr = g_model(low)
    g_loss = (sr - high).abs().mean() + 0.005 * bce(d_model(sr), torch.ones(2, 1))
    g_loss.backward(inputs=list(g_model.parameters()))
    g_optimizer.step()

    d_optimizer.zero_grad()
    d_loss = bce(d_model(high), torch.ones(2, 1)) + bce(d_model(sr.detach()), torch.zeros(2, 1))
    d_loss.backward()
    g_optimizer.step()  # again
