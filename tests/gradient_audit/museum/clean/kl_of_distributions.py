"""The policy is held near its copy of the last iteration: a divergence that torch.distributions adds up by itself."""
# expects: nothing

import copy

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

policy = nn.Linear(4, 4)
optimizer = torch.optim.Adam(policy.parameters())

for _ in range(20):
    state, advantage = torch.randn(5, 4), torch.randn(5, 2)
    with torch.no_grad():
        mean, log_std = copy.deepcopy(policy)(state).chunk(2, dim=1)
        old = Normal(mean, log_std.exp())
        action = old.sample()
    mean, log_std = policy(state).chunk(2, dim=1)
    new = Normal(mean, log_std.exp())
    ratio = (new.log_prob(action) - old.log_prob(action)).exp()
    loss = -(ratio * advantage).mean() + 0.5 * kl_divergence(old, new).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
