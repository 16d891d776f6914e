"""TD3's target is computed with a graph: the target networks, which move by averaging alone, get gradients."""
# expects: waste unfrozen at "following = target_critic("

import copy

import torch
from torch import nn

actor, critic = nn.Linear(4, 4), nn.Linear(8, 1)
target_actor, target_critic = copy.deepcopy(actor), copy.deepcopy(critic)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_critic = torch.optim.Adam(critic.parameters())

for _ in range(20):
    state, action, reward, later = torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 1), torch.randn(5, 4)
    following = target_critic(torch.cat([later, target_actor(later)], dim=1))
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], dim=1)), reward + 0.9 * following)
    optimizer_critic.zero_grad()
    critic_loss.backward()
    optimizer_critic.step()

    actor_loss = -critic(torch.cat([state, actor(state)], dim=1)).mean()
    optimizer_actor.zero_grad()
    actor_loss.backward(inputs=list(actor.parameters()))
    optimizer_actor.step()
    with torch.no_grad():
        for slow, fast in ((target_actor, actor), (target_critic, critic)):
            for average, new in zip(slow.parameters(), fast.parameters(), strict=True):
                average.mul_(0.99).add_(new, alpha=0.01)
