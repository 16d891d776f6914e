"""Soft actor-critic without detach(): the actor's loss moves the temperature, whose step is on the sum of both."""
# expects: error mixed at "actor_loss.backward()"
# networks: actor, log_alpha
# cure: "actor_loss.backward()" -> "actor_loss.backward(inputs=list(actor.parameters()))"

import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Linear(6, 1).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
optimizer_actor = torch.optim.Adam(actor.parameters())
optimizer_alpha = torch.optim.Adam([log_alpha])

for _ in range(5):
    states = torch.randn(5, 4)
    policy = torch.distributions.Normal(actor(states), 1.0)
    actions = policy.rsample()
    log_prob = policy.log_prob(actions).sum(dim=1, keepdim=True)
    optimizer_actor.zero_grad()
    optimizer_alpha.zero_grad()
    actor_loss = (log_alpha.exp() * log_prob - critic(torch.cat([states, actions], dim=1))).mean()
    actor_loss.backward()
    optimizer_actor.step()
    alpha_loss = -(log_alpha * (log_prob.detach() - 2)).mean()
    alpha_loss.backward()
    optimizer_alpha.step()
