"""The repaired loop as it is printed: labels (N, 1), and D ends with logits (N,).

https://www.php.cn/ of 2025-10-02: 解决PyTorch GAN训练中的梯度计算错误
"""
# expects: mistake labels-broadcast at "d_loss_real = "
# cure: "torch.ones(x_real.shape[0], 1, device=device)" -> "torch.ones(x_real.shape[0], device=device)"
# cure: "torch.zeros(x_real.shape[0], 1, device=device)" -> "torch.zeros(x_real.shape[0], device=device)"

import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import tqdm


class Reshape(torch.nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.size(0), *self.shape)


class Generator(torch.nn.Module):
    def __init__(self, z_dim=64, num_channels=1):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(
            nn.Linear(z_dim, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
            nn.Linear(512, 64 * 7 * 7),
            nn.BatchNorm1d(64 * 7 * 7),
            nn.ReLU(),
            Reshape(64, 7, 7),
            nn.PixelShuffle(2),
            nn.Conv2d(in_channels=16, out_channels=32, kernel_size=3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.PixelShuffle(2),
            nn.Conv2d(in_channels=8, out_channels=1, kernel_size=3, padding=1),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(torch.nn.Module):
    def __init__(self, num_channels=1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(in_channels=1, out_channels=32, kernel_size=4, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(in_channels=32, out_channels=64, kernel_size=4, padding=1, stride=2),
            nn.ReLU(),
            Reshape(64 * 7 * 7),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(),
            nn.Linear(512, 1),
            Reshape(),
        )

    def forward(self, x):
        return self.net(x)


def build_input(x, y, device):
    x_real = x.to(device)
    y_real = y.to(device)
    return x_real, y_real


class DummyDataLoader:
    def __init__(self, num_batches, batch_size, image_size, num_channels):
        self.num_batches = num_batches
        self.batch_size = batch_size
        self.image_size = image_size
        self.num_channels = num_channels

    def __iter__(self):
        for _ in range(self.num_batches):
            x = torch.randn(self.batch_size, self.num_channels, self.image_size, self.image_size)
            y = torch.randint(0, 10, (self.batch_size,))
            yield x, y

    def __len__(self):
        return self.num_batches


num_latents = 64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
g = Generator(z_dim=num_latents).to(device)
d = Discriminator().to(device)

g_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(d.parameters(), lr=1e-3)

iter_max = 1000
batch_size = 64
image_size = 28
num_channels = 1
train_loader = DummyDataLoader(iter_max, batch_size, image_size, num_channels)

with tqdm(total=int(iter_max)) as pbar:
    for idx, (x, y) in enumerate(train_loader):  # noqa: B007
        x_real, y_real = build_input(x, y, device)

        d_optimizer.zero_grad()

        real_output = d(x_real)
        real_label = torch.ones(x_real.shape[0], 1, device=device)
        d_loss_real = F.binary_cross_entropy_with_logits(real_output, real_label).mean()

        z = torch.randn(x_real.shape[0], g.z_dim, device=device)
        with torch.no_grad():
            fake_samples = g(z).detach()

        fake_output = d(fake_samples)
        fake_label = torch.zeros(x_real.shape[0], 1, device=device)
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
