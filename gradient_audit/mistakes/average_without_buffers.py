"""An EMA of the weights that leaves out the buffers."""

import torch
from torch import nn

WHY = """parameters() has no buffers: the running mean and variance of a BatchNorm in the average stay at 0 and 1,
as they were when the copy was made. In eval() the average normalises with them, and its samples are wrong,
although the average of the weights is right."""
CURE = "Copy the buffers after each step, as here and as torch.optim.swa_utils.AveragedModel does."
WRONG_RETURNS = ([0.0], [1.0])
RIGHT_RETURNS = ([5.0], [3.33333])


def wrong():
    network, average = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
    batch = torch.tensor([[3.0], [4.0], [6.0], [7.0]])
    for _ in range(200):
        network(batch)
        new = dict(network.named_parameters())
        with torch.no_grad():
            for name, mean in average.named_parameters():
                mean.lerp_(new[name], 0.1)
    return average.running_mean, average.running_var


def right():
    network, average = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
    batch = torch.tensor([[3.0], [4.0], [6.0], [7.0]])
    for _ in range(200):
        network(batch)
        new = network.state_dict()
        with torch.no_grad():
            for name, mean in average.named_parameters():
                mean.lerp_(new[name], 0.1)
            for name, buffer in average.named_buffers():
                buffer.copy_(new[name])
    return average.running_mean, average.running_var
