"""Both losses from one pass through D, which steps between them; and a sigmoid before a loss that takes logits.

https://www.php.cn/ of 2025-10-02: 解决PyTorch GAN训练中的梯度计算错误
"""
# expects: error overwritten at "d_optimizer.step()"
# expects: mistake step-between-backwards at "g_loss.backward()"
# cure: "    g_optimizer.zero" -> "    g_loss = loss_nonsaturating(d, g, torch.ones(6, 4))[1]\n    g_optimizer.zero"

import torch
import torch.nn.functional as F
from torch import nn


def loss_nonsaturating(d, g, x_real):
    dgz = torch.sigmoid(d(g(torch.randn(len(x_real), 3))))
    dx = d(x_real)
    ones, zeros = torch.ones_like(dx), torch.zeros_like(dx)
    g_loss = F.binary_cross_entropy_with_logits(dgz, ones)
    d_loss = F.binary_cross_entropy_with_logits(dx, ones) + F.binary_cross_entropy_with_logits(dgz, zeros)
    return d_loss, g_loss


g = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
d = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0))
g_optimizer, d_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3), torch.optim.Adam(d.parameters(), lr=1e-3)

for _ in range(5):
    d_loss, g_loss = loss_nonsaturating(d, g, torch.randn(6, 4))
    d_optimizer.zero_grad()
    d_loss.backward(retain_graph=True)
    d_optimizer.step()

    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
