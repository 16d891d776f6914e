"""DDP averages the gradient of the wrong loss."""

import torch
from torch.nn.parallel import DistributedDataParallel

from gradient_audit.mistakes.one_rank import one_rank, record_average
from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """DDP averages G's gradients in the first backward pass after G's forward pass, and in no other. With
retain_graph=True that is D's loss: G steps on a gradient that was not averaged, and the processes diverge without an
error. The first number is what DDP averages, the second what G steps on."""
CURE = """D's loss on fake.detach(), as in gan_detach.py. Or all-reduce the gradients in a pre-hook of
optimizer.step(), as common/ranks.py does."""
UNSEEN = "G's weights in two processes after a step: they differ."
WRONG_RETURNS = ([[0.49]], [[-0.91]])
RIGHT_RETURNS = ([[-0.91]], [[-0.91]])


def wrong():
    generator, discriminator, optimizer_g, _ = one_weight_gan()
    averaged = []
    with one_rank():
        network = DistributedDataParallel(generator)
        network.register_comm_hook(averaged, record_average)
        fake = network(torch.ones(1, 1))
        (discriminator(fake) ** 2).backward(retain_graph=True)
        optimizer_g.zero_grad()
        ((discriminator(fake) - 1) ** 2).backward()
    return averaged, generator.weight.grad


def right():
    generator, discriminator, optimizer_g, _ = one_weight_gan()
    averaged = []
    with one_rank():
        network = DistributedDataParallel(generator)
        network.register_comm_hook(averaged, record_average)
        fake = network(torch.ones(1, 1))
        (discriminator(fake.detach()) ** 2).backward()
        optimizer_g.zero_grad()
        ((discriminator(fake) - 1) ** 2).backward()
    return averaged, generator.weight.grad
