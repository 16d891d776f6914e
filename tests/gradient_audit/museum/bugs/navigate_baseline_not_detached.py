"""The critic's value is a baseline of the policy's loss, and is not detached: both losses move the critic.

https://github.com/astariul/encode-attend-navigate-pytorch/pull/3
"""
# expects: error mixed at "policy_loss.backward("
# cure: "policy_loss.backward(" -> "policy_loss.backward(inputs=list(policy.parameters()), "

import torch
from torch import nn

policy, critic = nn.Linear(4, 3), nn.Linear(4, 1)
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)

for _ in range(5):
    cities, reward = torch.randn(6, 4), torch.rand(6)
    tours = torch.distributions.Categorical(logits=policy(cities))
    value = critic(cities).squeeze(1)
    policy_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    policy_loss = ((reward - value) * tours.log_prob(tours.sample())).mean()
    policy_loss.backward(retain_graph=True)
    critic_loss = ((reward - value) ** 2).mean()
    critic_loss.backward()
    policy_optimizer.step()
    critic_optimizer.step()
