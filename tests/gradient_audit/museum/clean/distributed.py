"""DistributedDataParallel over gloo, in a process group of one."""
# expects: nothing

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
generator, discriminator = DistributedDataParallel(nn.Linear(3, 4)), DistributedDataParallel(nn.Linear(4, 1))
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

for _ in range(5):
    fake = generator(torch.randn(5, 3))
    d_loss = discriminator(fake.detach()).mean() - discriminator(torch.randn(5, 4)).mean()
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()

    discriminator.requires_grad_(False)
    g_loss = -discriminator(fake).mean()
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    discriminator.requires_grad_(True)
