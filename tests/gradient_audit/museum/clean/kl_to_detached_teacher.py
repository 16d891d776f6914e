"""Distillation from a teacher that is trained beside the student: the divergence holds the entropy of its answer."""
# expects: nothing

import torch
from torch import nn
from torch.nn import functional as F

teacher, student = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer_teacher = torch.optim.Adam(teacher.parameters())
optimizer_student = torch.optim.Adam(student.parameters())

for _ in range(20):
    x, labels = torch.randn(5, 4), torch.randint(4, (5,))
    answer = teacher(x)
    teacher_loss = F.cross_entropy(answer, labels)
    optimizer_teacher.zero_grad()
    teacher_loss.backward()
    optimizer_teacher.step()

    logits = student(x)
    divergence = F.kl_div(logits.log_softmax(1), answer.detach().softmax(1), reduction="batchmean")
    loss = F.cross_entropy(logits, labels) + divergence
    optimizer_student.zero_grad()
    loss.backward()
    optimizer_student.step()
