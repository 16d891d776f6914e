"""A recurrent network over six time steps in one graph; the state goes on to the next batch detached."""
# expects: nothing

import torch
from torch import nn

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])

state = torch.zeros(5, 4)
for _ in range(8):
    outputs = []
    for _ in range(6):
        state = cell(torch.randn(5, 3), state)
        outputs.append(head(state))
    loss = torch.stack(outputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
