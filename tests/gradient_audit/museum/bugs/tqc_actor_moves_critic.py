"""The actor's loss goes through the critic after the critic's gradients are there, and before the critic steps.

https://github.com/ray-project/ray/pull/65125
"""
# expects: question mixed at "policy_loss.backward()"
# cure: "policy_loss.backward()" -> "policy_loss.backward(inputs=list(actor.parameters()))"
# mistake: d-steps-on-g-loss

import torch
from torch import nn

actor, critic = nn.Linear(3, 1), nn.Linear(4, 1)
policy_optimizer = torch.optim.Adam(actor.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters())

for _ in range(5):
    states, actions, targets = torch.randn(8, 3), torch.randn(8, 1), torch.randn(8, 1)
    critic_optimizer.zero_grad()
    q_loss = nn.functional.mse_loss(critic(torch.cat((states, actions), 1)), targets)
    q_loss.backward()
    policy_optimizer.zero_grad()
    policy_loss = -critic(torch.cat((states, actor(states).tanh()), 1)).mean()
    policy_loss.backward()
    critic_optimizer.step()
    policy_optimizer.step()
