"""Optimizers wrapped as accelerate wraps them, with gradient accumulation: every second step() counts."""
# expects: nothing

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "site-packages"))
from trainer_library import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)

for _ in range(12):
    features, labels = torch.randn(4, 4), torch.randint(3, (4,))
    loss = nn.functional.cross_entropy(model(features), labels)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
