"""Two scores from one stack: a weight is written before a pass that comes to it with a gradient of exactly zero."""
# expects: nothing

import torch
from torch import nn

first, second = nn.Linear(4, 3), nn.Linear(4, 3)

for _ in range(3):
    x = torch.randn(5, 4, requires_grad=True)
    scores = torch.stack([first(x), second(x)])
    losses = [score.square().mean() for score in scores]
    losses[0].backward(retain_graph=True)
    first.weight.data -= 0.1 * first.weight.grad
    first.weight.grad = None
    losses[1].backward()
    second.weight.data -= 0.1 * second.weight.grad
    first.weight.grad = second.weight.grad = None
