"""Momentum and error feedback by hand: what is assigned to `.grad` is computed from earlier gradients, too."""
# expects: nothing

import torch
from torch import nn

networks = [nn.Linear(4, 4) for _ in range(3)]
optimizers = [torch.optim.SGD(network.parameters(), 0.1) for network in networks]
memory = {p: torch.zeros_like(p) for network in networks for p in network.parameters()}

for _ in range(6):
    x = torch.randn(8, 4)
    momentum, feedback, average = networks
    for network, optimizer in zip(networks[:2], optimizers, strict=False):
        optimizer.zero_grad()
        (network(x) - x).square().mean().backward()
    for p in momentum.parameters():
        memory[p] = 0.9 * memory[p] + p.grad
        p.grad = memory[p].clone()
    for p in feedback.parameters():
        whole = p.grad + memory[p]
        p.grad = whole.sign() * whole.abs().mean()
        memory[p] = whole - p.grad
    gradients = torch.autograd.grad((average(x) - x).square().mean(), [*average.parameters()])
    for p, gradient in zip(average.parameters(), gradients, strict=True):
        memory[p].lerp_(gradient, 0.1)
        p.grad = memory[p].clone()
    for optimizer in optimizers:
        optimizer.step()
