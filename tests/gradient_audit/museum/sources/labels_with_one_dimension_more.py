"""The repaired loop as it is printed: labels (N, 1), and D ends with logits (N,).

https://www.php.cn/ of 2025-10-02: 解决PyTorch GAN训练中的梯度计算错误
"""
# expects: mistake labels-broadcast at "d_loss_real = "
# cure: "torch.ones(6, 1), torch.zeros(6, 1)" -> "torch.ones(6), torch.zeros(6)"

import torch
import torch.nn.functional as F
from torch import nn

g = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4))
d = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0))
g_optimizer, d_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3), torch.optim.Adam(d.parameters(), lr=1e-3)
real_label, fake_label = torch.ones(6, 1), torch.zeros(6, 1)

for _ in range(5):
    d_optimizer.zero_grad()
    d_loss_real = F.binary_cross_entropy_with_logits(d(torch.randn(6, 4)), real_label)
    with torch.no_grad():
        fake_samples = g(torch.randn(6, 3)).detach()
    d_loss_fake = F.binary_cross_entropy_with_logits(d(fake_samples), fake_label)
    d_loss = d_loss_real + d_loss_fake
    d_loss.backward()
    d_optimizer.step()

    g_optimizer.zero_grad()
    g_loss = F.binary_cross_entropy_with_logits(d(g(torch.randn(6, 3))), real_label)
    g_loss.backward()
    g_optimizer.step()
