"""The teacher's answer comes before the student's, with a graph: gradients for a teacher that nobody froze."""
# expects: waste unfrozen at "answer = teacher(x)"

import torch
from torch import nn

teacher = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).eval()
student = nn.Linear(4, 4)
optimizer = torch.optim.Adam(student.parameters())

for _ in range(20):
    x = torch.randn(5, 4)
    answer = teacher(x)
    output = student(x)
    loss = nn.functional.mse_loss(output, answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
