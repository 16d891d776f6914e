"""Distillation whose divergence is that of the teacher's answer from itself: a number that is always 0."""
# expects: question dead at "loss = loss + 5 * nn.functional.kl_div("
# cure: "kl_div(wanted, wanted" -> "kl_div(given, wanted"
# trains: student

import torch
from torch import nn

teacher, student = nn.Linear(6, 4), nn.Linear(6, 4)
optimizer = torch.optim.Adam(student.parameters())

for _ in range(5):
    x, y = torch.randn(16, 6), torch.randint(4, (16,))
    with torch.no_grad():
        wanted = teacher(x).log_softmax(1)
    given = student(x).log_softmax(1)
    loss = nn.functional.nll_loss(given, y)
    loss = loss + 5 * nn.functional.kl_div(wanted, wanted, log_target=True, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
