"""The teacher is a second name of the student, no copy: its term of the loss is always 0."""
# expects: question dead at "loss = nn.functional.cross_entropy(student(batch), torch.randint(3, (8,))) + 2 * distance"
# cure: "teacher = student" -> "teacher = nn.Linear(4, 3)"

import torch
from torch import nn
from torch.optim import SGD

student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
teacher = student
optimizer = SGD(student.parameters(), lr=0.1)
for _ in range(5):
    batch = torch.randn(8, 4)
    with torch.no_grad():
        answers = teacher(batch)
    distance = nn.functional.mse_loss(student(batch), answers)
    loss = nn.functional.cross_entropy(student(batch), torch.randint(3, (8,))) + 2 * distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
