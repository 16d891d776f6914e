"""Polyak averaging of a critic through which the actor's loss goes: its writes are no steps."""
# expects: waste unfrozen at "actor_loss.backward()"

import copy

import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
target = copy.deepcopy(critic)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_critic = torch.optim.Adam(critic.parameters())

for _ in range(5):
    state = torch.randn(8, 4)
    critic_loss = (critic(torch.cat([state, torch.randn(8, 2)], 1)) - torch.randn(8, 1)).square().mean()
    optimizer_critic.zero_grad()
    critic_loss.backward()
    optimizer_critic.step()
    actor_loss = -target(torch.cat([state, actor(state)], 1)).mean()
    optimizer_actor.zero_grad()
    actor_loss.backward()
    optimizer_actor.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
            slow.mul_(0.99).add_(fast, alpha=0.01)
