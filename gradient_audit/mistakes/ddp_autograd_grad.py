"""DDP averages nothing that autograd.grad() computes."""

import torch
from torch.nn.parallel import DistributedDataParallel

from gradient_audit.mistakes.one_rank import one_rank, record_average
from gradient_audit.mistakes.one_weight import one_weight_gan

WHY = """DDP averages a gradient when it is accumulated into .grad. torch.autograd.grad() returns gradients
instead, so each process keeps its own. The first number is what DDP averages."""
CURE = """backward(), with inputs= for G's weights alone; or dist.all_reduce() of the gradients that
autograd.grad() returns."""
WRONG_RETURNS = ([], [[0.49]])
RIGHT_RETURNS = ([[0.49]], [[0.49]])


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    averaged = []
    with one_rank():
        network = DistributedDataParallel(generator)
        network.register_comm_hook(averaged, record_average)
        g_loss = discriminator(network(torch.ones(1, 1))) ** 2
        (generator.weight.grad,) = torch.autograd.grad(g_loss, generator.weight)
    return averaged, generator.weight.grad


def right():
    generator, discriminator, _, _ = one_weight_gan()
    averaged = []
    with one_rank():
        network = DistributedDataParallel(generator)
        network.register_comm_hook(averaged, record_average)
        g_loss = discriminator(network(torch.ones(1, 1))) ** 2
        g_loss.backward(inputs=list(generator.parameters()))
    return averaged, generator.weight.grad
