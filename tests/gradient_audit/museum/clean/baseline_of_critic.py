"""The critic's value is taken off the actor's return: a baseline, detached, which the critic's own loss trains."""
# expects: question dead at "actor_loss = -(gain - value."

import torch
from torch import nn

actor, critic = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_critic = torch.optim.Adam(critic.parameters())

for _ in range(20):
    x = torch.randn(8, 4)
    gain, value = actor(x), critic(x)
    actor_loss = -(gain - value.detach()).mean()
    optimizer_actor.zero_grad()
    actor_loss.backward()
    optimizer_actor.step()

    critic_loss = nn.functional.mse_loss(value, gain.detach())
    optimizer_critic.zero_grad()
    critic_loss.backward()
    optimizer_critic.step()
