"""A GAN of one weight each, whose every number can be checked by hand."""

import torch
from torch import nn


def one_weight_gan() -> tuple[nn.Linear, nn.Linear, torch.optim.SGD, torch.optim.SGD]:
    """Return G(x) = 0.5 x and D(x) = 0.7 x, and for each an SGD with a learning rate of 1."""
    generator, discriminator = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    nn.init.constant_(generator.weight, 0.5)
    nn.init.constant_(discriminator.weight, 0.7)
    optimizers = (torch.optim.SGD(network.parameters(), lr=1.0) for network in (generator, discriminator))
    return generator, discriminator, *optimizers
