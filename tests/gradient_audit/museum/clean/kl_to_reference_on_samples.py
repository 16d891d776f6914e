"""What a policy samples chooses numbers of a frozen reference: their likelihood is no constant of the policy's.

As in reinforcement learning from feedback: a penalty for leaving the reference, on tokens that the policy has drawn.
"""
# expects: nothing

import copy

import torch
from torch import nn

policy = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
reference = copy.deepcopy(policy).requires_grad_(False)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for _ in range(5):
    prompt = torch.randint(12, (16,))
    with torch.no_grad():
        token = torch.multinomial(policy(prompt).softmax(1), 1)
        expected = reference(prompt).log_softmax(1).gather(1, token)[:, 0]
        next_expected = -nn.functional.cross_entropy(reference(token[:, 0]), token[:, 0], reduction="none")
    advantage = (token[:, 0] == 2).float() - 0.2
    likely = policy(prompt).log_softmax(1).gather(1, token)[:, 0]
    next_likely = policy(token[:, 0]).log_softmax(1).gather(1, token)[:, 0]
    drift = (likely - expected).mean() + (next_likely - next_expected).mean()
    loss = -(likely * advantage).mean() + 0.1 * drift
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
