"""The second critic takes the tensors of the first one, `assign=True`: each optimizer moves both, which stay equal."""
# expects: question twice at "optimizer.step()"
# cure: ", assign=True" -> ""
# mistake: parameter-twice

import torch
from torch import nn

critics = [nn.Linear(5, 1), nn.Linear(5, 1)]
critics[1].load_state_dict(critics[0].state_dict(), assign=True)
optimizers = [torch.optim.Adam(critic.parameters()) for critic in critics]
for _ in range(5):
    states, returns = torch.randn(8, 5), torch.randn(8, 1)
    for critic, optimizer in zip(critics, optimizers, strict=True):
        optimizer.zero_grad()
        (critic(states) - returns).square().mean().backward()
        optimizer.step()
