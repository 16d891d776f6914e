"""Both losses from one pass through D, which steps between them; and a sigmoid before a loss that takes logits.

https://www.php.cn/ of 2025-10-02: 解决PyTorch GAN训练中的梯度计算错误
"""
# expects: error overwritten at "d_optimizer.step()"
# expects: mistake step-between-backwards at "g_loss.backward()"
# cure: "    g_optimizer.z" -> "    _, g_loss = loss_nonsaturating(d, g, x_real, device=device)\n    g_optimizer.z"

import torch
import torch.nn.functional as F
from torch import nn


def loss_nonsaturating(d, g, x_real, *, device):
    z = torch.randn(x_real.shape[0], g.z_dim, device=device)
    gz = g(z)
    dgz = F.sigmoid(d(gz))
    dx = d(x_real)

    real_label = torch.ones(x_real.shape[0], device=device)
    fake_label = torch.zeros(x_real.shape[0], device=device)

    bce_loss = F.binary_cross_entropy_with_logits
    g_loss = bce_loss(dgz, real_label).mean()
    d_loss = bce_loss(dx, real_label).mean() + bce_loss(dgz, fake_label).mean()

    return d_loss, g_loss


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
g = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).to(device)
g.z_dim = 3
d = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0)).to(device)
g_optimizer, d_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3), torch.optim.Adam(d.parameters(), lr=1e-3)

for _ in range(5):
    x_real = torch.randn(6, 4, device=device)
    d_loss, g_loss = loss_nonsaturating(d, g, x_real, device=device)
    d_optimizer.zero_grad()
    d_loss.backward(retain_graph=True)
    d_optimizer.step()

    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
