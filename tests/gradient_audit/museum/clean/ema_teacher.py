"""Mean teacher: a copy that no optimizer holds, moved by an average of the student's weights under no_grad()."""
# expects: nothing
# networks: student

import copy

import torch
from torch import nn

student = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
teacher = copy.deepcopy(student)
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

for _ in range(5):
    labelled, labels, unlabelled = torch.randn(4, 4), torch.randint(3, (4,)), torch.randn(4, 4)
    wanted = teacher(unlabelled).softmax(1)
    consistency = (student(unlabelled).softmax(1) - wanted).square().mean()
    loss = nn.functional.cross_entropy(student(labelled), labels) + consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for average, new in zip(teacher.parameters(), student.parameters(), strict=True):
            average.mul_(0.99).add_(new, alpha=0.01)
