"""Clipping comes between zero_grad() and backward(), where there is no gradient to clip."""
# expects: error clipped at "clip_grad_norm_(critic.parameters(), 0.5)"
# cure: "    nn.utils.clip_grad_norm_(critic.parameters(), 0.5)\n" -> ""
# cure: "    optimizer.step()" -> "    nn.utils.clip_grad_norm_(critic.parameters(), 0.5)\n    optimizer.step()"

import torch
from torch import nn

critic = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.RMSprop(critic.parameters())

for _ in range(5):
    loss = critic(torch.randn(4, 4)).mean() - critic(torch.randn(4, 4)).mean()
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
    loss.backward()
    optimizer.step()
