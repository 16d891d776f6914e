"""The default recipe as a contender of the speedrun: step, networks and options of `gan_detach.py`; copy it to beat it.

docs/records.md has the rule, and the command: `python scripts/benchmarks/speedrun.py my_contender.py`.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from common.data import batches
from common.optimizers import fused_adam, linear_decay
from common.options import GanOptions
from scripts.gan_detach import train_step


def train(images: Tensor, seed: int) -> Iterator[Callable[[int], Tensor]]:
    """Train on uint8 images (N, 1, 28, 28); yield, at any time, a function that draws n samples in [-1, 1]."""
    options = GanOptions().for_images(images)
    networks = generator, discriminator = options.make_networks(images.shape[1:])
    rates = zip(networks, (options.lr, options.lr_d), strict=True)
    optimizers = [fused_adam(network.parameters(), lr, options.betas) for network, lr in rates]
    rate = linear_decay(options.steps, options.steps // 2)
    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema))
    for step, real in enumerate(islice(batches(images, options.batch_size, seed), options.steps)):
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * rate(step)
        train_step(generator, discriminator, *optimizers, real, torch.randn(len(real), options.z_dim))
        average.update_parameters(generator)
        if (step + 1) % 100 == 0:
            yield lambda count: average(torch.randn(count, options.z_dim))
