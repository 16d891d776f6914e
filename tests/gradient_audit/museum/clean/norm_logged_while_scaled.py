"""The norm of the scaled gradients is logged, with an infinite bound; they are clipped after unscale_."""
# expects: nothing

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(5):
    loss = model(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf")) / scaler.get_scale()
    print("norm of the gradient", norm.item())
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
