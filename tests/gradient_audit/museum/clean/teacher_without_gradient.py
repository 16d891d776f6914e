"""A teacher that nobody froze, used under no_grad, and that no optimizer holds."""
# expects: nothing

import torch
from torch import nn

teacher, student = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.Adam(student.parameters())

for _ in range(5):
    features = torch.randn(4, 4)
    with torch.no_grad():
        wanted = teacher(features)
    loss = nn.functional.mse_loss(student(features), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
