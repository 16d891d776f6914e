"""An EMA of the weights that leaves out the buffers."""

import torch
from torch import nn

WHY = """parameters() has no buffers: the running mean and variance of a BatchNorm in the average stay at 0 and 1. In
eval() the average normalises with them, and its samples are wrong, although its weights are right."""
CURE = "Copy the buffers after each step, as here and as torch.optim.swa_utils.AveragedModel does."
UNSEEN = "running_mean and running_var of the average: still 0 and 1."
WRONG_RETURNS = ([0.0], [1.0])
RIGHT_RETURNS = ([5.0], [2.0])


def wrong():
    network, average = nn.BatchNorm1d(1, momentum=1.0), nn.BatchNorm1d(1)
    network(torch.tensor([[4.0], [6.0]]))
    with torch.no_grad():
        for mean, new in zip(average.parameters(), network.parameters(), strict=True):
            mean.lerp_(new, 0.1)
    return average.running_mean, average.running_var


def right():
    network, average = nn.BatchNorm1d(1, momentum=1.0), nn.BatchNorm1d(1)
    network(torch.tensor([[4.0], [6.0]]))
    with torch.no_grad():
        for mean, new in zip(average.parameters(), network.parameters(), strict=True):
            mean.lerp_(new, 0.1)
        for buffer, new in zip(average.buffers(), network.buffers(), strict=True):
            buffer.copy_(new)
    return average.running_mean, average.running_var
