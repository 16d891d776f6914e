"""A hook adds each gradient to a sum of the script's own, which becomes `.grad` before the step, then is zeroed."""
# expects: nothing

import torch
from torch import nn

network = nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)


def add_to_sum(parameter):
    parameter.main_grad.add_(parameter.grad.float())
    parameter.grad = None


for parameter in network.parameters():
    parameter.main_grad = torch.zeros_like(parameter)
    parameter.register_post_accumulate_grad_hook(add_to_sum)
for _ in range(5):
    for _ in range(3):
        network(torch.randn(8, 4)).square().mean().backward()
    for parameter in network.parameters():
        parameter.grad = parameter.main_grad
    optimizer.step()
    for parameter in network.parameters():
        parameter.grad = None
        parameter.main_grad.zero_()
