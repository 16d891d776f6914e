"""The forward pass of the module inside DistributedDataParallel: nothing is averaged over the processes."""
# expects: question unaveraged at "loss.backward()"
# cure: "model.module(torch" -> "model(torch"

import os

import torch
import torch.distributed as dist
from torch import nn

os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(5):
    loss = model.module(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
