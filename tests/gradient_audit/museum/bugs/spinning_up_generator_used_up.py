"""The critics' parameters are an iterator: after its first use no parameter is frozen any more.

https://github.com/openai/spinningup/pull/320
"""
# expects: waste wasted at "loss_pi.backward()"
# cure: "loss_pi.backward()" -> "loss_pi.backward(inputs=list(policy.parameters()))"

import itertools

import torch
from torch import nn

policy, q1, q2 = nn.Linear(3, 1), nn.Linear(4, 1), nn.Linear(4, 1)
q_params = itertools.chain(q1.parameters(), q2.parameters())
pi_optimizer = torch.optim.Adam(policy.parameters())
q_optimizer = torch.optim.Adam(q_params)

for _ in range(5):
    states, actions, target = torch.randn(6, 3), torch.randn(6, 1), torch.randn(6, 1)
    pairs = torch.cat((states, actions), 1)
    q_optimizer.zero_grad()
    loss_q = (q1(pairs) - target).square().mean() + (q2(pairs) - target).square().mean()
    loss_q.backward()
    q_optimizer.step()

    for parameter in q_params:
        parameter.requires_grad = False
    pi_optimizer.zero_grad()
    chosen = torch.cat((states, policy(states).tanh()), 1)
    loss_pi = -torch.min(q1(chosen), q2(chosen)).mean()
    loss_pi.backward()
    pi_optimizer.step()
    for parameter in q_params:
        parameter.requires_grad = True
