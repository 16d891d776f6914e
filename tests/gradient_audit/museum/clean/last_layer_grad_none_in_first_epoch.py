"""DINO holds its last layer still in the first epoch: its gradient is set to None before every step."""
# expects: question unreached at "optimizer.step()"

import torch
from torch import nn


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.last_layer = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.last_layer(self.body(x).relu())


student = Student()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

for epoch in range(2):
    for _ in range(20):
        loss = nn.functional.cross_entropy(student(torch.randn(5, 4)), torch.randint(4, (5,)))
        optimizer.zero_grad()
        loss.backward()
        if epoch < 1:
            for name, parameter in student.named_parameters():
                if "last_layer" in name:
                    parameter.grad = None
        optimizer.step()
