"""ADDA: of two encoders, the one that is to be trained is frozen, after it was given the weights of the other.

Its optimizer steps on nothing.
"""
# expects: question unreached at "optimizer_target.step()"
# expects: question wasted at "optimizer_critic.zero_grad()"
# cure: "target.requires_grad_(False)" -> "source.requires_grad_(False)"
# cure: ".backward()\n    optimizer_target" -> ".backward(inputs=[*target.parameters()])\n    optimizer_target"
# networks: source, target, critic

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
source, target, critic = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(4, 2)
optimizer_source = torch.optim.Adam(source.parameters())
loss = source(torch.randn(8, 6)).square().mean()
loss.backward()
optimizer_source.step()
target.load_state_dict(source.state_dict())
target.requires_grad_(False)
optimizer_target, optimizer_critic = torch.optim.Adam(target.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(12):
    data = torch.randn(8, 6)
    with torch.no_grad():
        codes = torch.cat((source(data), target(data)))
    optimizer_critic.zero_grad()
    cross_entropy(critic(codes), torch.cat((torch.ones(8), torch.zeros(8))).long()).backward()
    optimizer_critic.step()
    optimizer_target.zero_grad()
    cross_entropy(critic(target(data)), torch.ones(8).long()).backward()
    optimizer_target.step()
