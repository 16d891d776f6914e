"""Dreamer's actor: its target is normalised, minus a moving quantile of the returns and over their range."""
# expects: nothing

import torch
from torch import nn

actor, critic = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_critic = torch.optim.Adam(critic.parameters())
quantiles = torch.zeros(2)

for _ in range(20):
    state = torch.randn(8, 4)
    target = critic(actor(state))
    seen = torch.quantile(target.detach().flatten(), torch.tensor([0.05, 0.95]))
    quantiles = 0.9 * quantiles + 0.1 * seen
    offset, scale = quantiles[0], (quantiles[1] - quantiles[0]).clamp(min=1.0)
    actor_loss = -((target - offset) / scale).mean()
    optimizer_actor.zero_grad()
    actor_loss.backward(inputs=list(actor.parameters()))
    optimizer_actor.step()

    critic_loss = nn.functional.mse_loss(critic(state), target.detach())
    optimizer_critic.zero_grad()
    critic_loss.backward()
    optimizer_critic.step()
