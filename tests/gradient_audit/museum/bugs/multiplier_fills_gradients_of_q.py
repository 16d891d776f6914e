"""Conservative Q-learning: the loss of the multiplier, a bare nn.Parameter, also fills q, which steps on the sum."""
# expects: error mixed at "(-penalty).backward"
# networks: q, log_multiplier
# cure: "(-penalty).backward(retain_graph=True)" -> "(-penalty).backward(retain_graph=True, inputs=[log_multiplier])"
# trains: q, log_multiplier

import torch
from torch import nn

q = nn.Linear(4, 3)
log_multiplier = nn.Parameter(torch.zeros(1))
optimizer_q, optimizer_m = torch.optim.Adam(q.parameters()), torch.optim.Adam([log_multiplier])

for _ in range(6):
    values = q(torch.randn(16, 4))
    penalty = log_multiplier.exp() * (values.logsumexp(1) - values[:, 0]).mean()
    optimizer_m.zero_grad()
    optimizer_q.zero_grad()
    (-penalty).backward(retain_graph=True)
    optimizer_m.step()
    loss = (values[:, 0] - torch.randn(16)).square().mean() + log_multiplier.exp().detach() * values.logsumexp(1).mean()
    loss.backward()
    optimizer_q.step()
