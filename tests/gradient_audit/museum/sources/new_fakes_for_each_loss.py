"""The repaired loop with labels of D's shape: D's fakes have no graph, and G's loss gets new ones.

https://www.php.cn/ of 2025-10-02: 解决PyTorch GAN训练中的梯度计算错误
"""
# The printed labels do not have D's shape (labels_with_one_dimension_more).
# differs: "torch.ones(x_real.shape[0], 1, device=device)" -> "torch.ones(x_real.shape[0], device=device)"
# differs: "torch.zeros(x_real.shape[0], 1, device=device)" -> "torch.zeros(x_real.shape[0], device=device)"
# expects: waste wasted at "g_loss.backward()"

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm


def build_input(x, y, device):
    x_real = x.to(device)
    y_real = y.to(device)
    return x_real, y_real


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
g = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4)).to(device)
g.z_dim = 3
d = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0)).to(device)
g_optimizer, d_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3), torch.optim.Adam(d.parameters(), lr=1e-3)
iter_max = 5
train_loader = [(torch.randn(6, 4), torch.zeros(6)) for _ in range(iter_max)]

with tqdm(total=int(iter_max)) as pbar:
    for idx, (x, y) in enumerate(train_loader):  # noqa: B007
        x_real, y_real = build_input(x, y, device)

        d_optimizer.zero_grad()

        real_output = d(x_real)
        real_label = torch.ones(x_real.shape[0], device=device)
        d_loss_real = F.binary_cross_entropy_with_logits(real_output, real_label).mean()

        z = torch.randn(x_real.shape[0], g.z_dim, device=device)
        with torch.no_grad():
            fake_samples = g(z).detach()

        fake_output = d(fake_samples)
        fake_label = torch.zeros(x_real.shape[0], device=device)
        d_loss_fake = F.binary_cross_entropy_with_logits(fake_output, fake_label).mean()

        d_loss = d_loss_real + d_loss_fake
        d_loss.backward()
        d_optimizer.step()

        g_optimizer.zero_grad()

        z = torch.randn(x_real.shape[0], g.z_dim, device=device)
        gen_samples = g(z)

        gen_output = d(gen_samples)

        g_loss = F.binary_cross_entropy_with_logits(gen_output, real_label).mean()

        g_loss.backward()
        g_optimizer.step()

        pbar.set_description(f"D_loss: {d_loss.item():.4f}, G_loss: {g_loss.item():.4f}")
        pbar.update(1)

print("训练完成!")
