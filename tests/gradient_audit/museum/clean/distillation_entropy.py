"""Distillation by the divergence in full: its entropy of the teacher is no function of the student, and changes."""
# expects: nothing

import torch
from torch import nn

student, teacher = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters())

for _ in range(5):
    features, labels = torch.randn(5, 4), torch.randint(3, (5,))
    with torch.no_grad():
        wanted = teacher(features).softmax(1)
    logits = student(features)
    negative_entropy = (wanted * wanted.log()).sum(1).mean()
    cross_entropy = -(wanted * logits.log_softmax(1)).sum(1).mean()
    loss = negative_entropy + cross_entropy + 0.5 * nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
