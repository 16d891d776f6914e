"""A table whose rows are copied out for each batch: its optimizer holds it without a gradient, and writes the rows."""
# expects: nothing

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.randn(16, 4))
        self.register_buffer("rows", torch.zeros(5, 4, requires_grad=True))
        self.register_buffer("ids", torch.zeros(5, dtype=torch.long))

    def forward(self, ids):
        with torch.no_grad():
            self.rows.copy_(self.weights[ids])
            self.ids.copy_(ids)
        return self.rows


class RowSigns(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        weights, rows, ids = self.param_groups[0]["params"]
        weights.index_add_(0, ids, rows.grad.sign(), alpha=-self.defaults["lr"])


table, head = Table(), nn.Linear(4, 4)
optimizer_table = RowSigns(list(table.buffers()), {"lr": 0.01})
optimizer_head = torch.optim.Adam(head.parameters())

for _ in range(20):
    loss = nn.functional.cross_entropy(head(table(torch.randint(16, (5,)))), torch.randint(4, (5,)))
    for optimizer in (optimizer_table, optimizer_head):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (optimizer_table, optimizer_head):
        optimizer.step()
