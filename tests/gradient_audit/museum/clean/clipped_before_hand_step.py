"""Gradients are clipped, then used by a step by hand with momentum, as fastai's GradientClip and its own Optimizer do.

https://github.com/fastai/fastai/blob/main/fastai/callback/training.py
"""
# expects: nothing
# networks: model

import torch
from torch import nn

model = nn.Linear(4, 1)
averages = [torch.zeros_like(parameter) for parameter in model.parameters()]

for _ in range(20):
    model.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with torch.no_grad():
        for parameter, average in zip(model.parameters(), averages, strict=True):
            average.mul_(0.9).add_(parameter.grad)
            parameter.add_(average, alpha=-0.1)
