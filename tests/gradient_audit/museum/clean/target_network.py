"""DDPG's critic: the target network is averaged after every step, and its values carry no gradient."""
# expects: waste graph at "target(following).detach()"

import copy

import torch
from torch import nn

critic = nn.Linear(4, 1)
target = copy.deepcopy(critic)
optimizer = torch.optim.Adam(critic.parameters())

for _ in range(5):
    state, following, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8, 1)
    value = reward + 0.9 * target(following).detach()
    loss = nn.functional.mse_loss(critic(state), value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
            slow.mul_(0.99).add_(fast, alpha=0.01)
