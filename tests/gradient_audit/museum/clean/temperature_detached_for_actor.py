"""Soft actor-critic: the temperature has a loss and an optimizer of its own; a fixed scale has a constant entropy."""
# expects: question dead at "actor_loss = (log_alpha.exp("
# networks: actor, critic, log_alpha

import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
log_alpha = torch.zeros(1, requires_grad=True)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_critic = torch.optim.Adam(critic.parameters())
optimizer_alpha = torch.optim.Adam([log_alpha])

for _ in range(5):
    states = torch.randn(5, 4)
    optimizer_critic.zero_grad()
    (critic(torch.cat([states, torch.randn(5, 2)], dim=1)) - torch.randn(5, 1)).square().mean().backward()
    optimizer_critic.step()

    policy = torch.distributions.Normal(actor(states), 1.0)
    actions = policy.rsample()
    log_prob = policy.log_prob(actions).sum(dim=1, keepdim=True)
    actor_loss = (log_alpha.exp().detach() * log_prob - critic(torch.cat([states, actions], dim=1))).mean()
    optimizer_actor.zero_grad()
    actor_loss.backward(inputs=list(actor.parameters()))
    optimizer_actor.step()

    alpha_loss = -(log_alpha * (log_prob.detach() - 2)).mean()
    optimizer_alpha.zero_grad()
    alpha_loss.backward()
    optimizer_alpha.step()
