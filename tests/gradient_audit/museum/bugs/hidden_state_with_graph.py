"""The hidden state goes on to the next iteration with its graph, which the last backward pass has freed."""
# expects: mistake loss-kept-with-graph at "loss.backward()"
# expects: error freed at "    state = cell("
# cure: "(5, 3), state)" -> "(5, 3), state.detach())"

import torch
from torch import nn

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])

state = torch.zeros(5, 4)
for _ in range(8):
    state = cell(torch.randn(5, 3), state)
    loss = head(state).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
