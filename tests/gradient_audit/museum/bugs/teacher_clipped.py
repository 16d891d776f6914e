"""The student is trained, and the gradients of the teacher are clipped, which has none.

No public report of it was found.
"""
# expects: question clipped at "clip_grad_norm_"
# cure: "teacher.parameters(), 1.0" -> "student.parameters(), 1.0"
# trains: student

import torch
from torch import nn

teacher, student = nn.Linear(6, 3).requires_grad_(False), nn.Linear(6, 3)
optimizer = torch.optim.AdamW(student.parameters(), 1e-3)
for _ in range(4):
    images = torch.randn(5, 6)
    loss = nn.functional.mse_loss(student(images), teacher(images))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
    optimizer.step()
