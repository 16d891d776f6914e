"""CycleGAN: two generators under one optimizer, two discriminators under another, chained with `itertools.chain`.

The generators A to B and B to A are trained together on unpaired images. Each is trained to fool the discriminator of
the other domain and to invert the other generator. The gradient of the cycle loss goes through both generators, so
nothing is detached between them. The discriminators are trained on detached fakes, new and past ones. Zhu et al.,
"Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks" (2017).

    a ── G_ab ── fake_b ─┬─ D_b ─────── adversarial ─┐
                         ├─ G_ba ── a ─ cycle        ├─ one backward to G_ab and G_ba; optimizer_g steps both
    b ── G_ab ── b ──────┼───────────── identity ────┘
                         └─ detach ── pool ── D_b ── d_loss     backward to D_a and D_b; optimizer_d steps both
    and the same with a and b exchanged.

    python scripts/cyclegan.py

trains the translation of digits into their outlines. As published, 200 epochs of horse2zebra:

    python scripts/cyclegan.py --dataset horse2zebra --width 64 --blocks 9 --halvings 3 --batch-size 1 --steps 266800 \
        --lr 2e-4 --cycle-weight 10 --identity-weight 5
"""

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from any folder

from common.cyclegan_models import (
    ImagePool,
    cyclegan_networks,
    least_squares_discriminator_loss,
    least_squares_generator_loss,
)
from common.data import batches, to_float
from common.domains import crop_and_flip, load_domains
from common.errors import as_bad_input
from common.launch import launch_run
from common.optimizers import fused_adam, linear_decay
from common.options import BatchSize, Count, Decay, Pixels, Range, Rate, RunOptions, Weight
from common.run import Run


def train_step(
    a_to_b,
    b_to_a,
    discriminator_a,
    discriminator_b,
    optimizer_g,
    optimizer_d,
    pool_a,
    pool_b,
    real_a,
    real_b,
    cycle_weight=10.0,
    identity_weight=5.0,
):
    """One update of all four networks.

    real_a, real_b: (N, C, H, W) in [-1, 1], unpaired. optimizer_g holds both generators, optimizer_d both
    discriminators; pool_a, pool_b: an `ImagePool` for the fakes of each domain. identity_weight 0 skips the identity
    loss and its passes. Returns 0-d tensors, detached, still on the device: the losses, each summed over the two
    domains and without its weight.
    """
    # Generators: fool D, reproduce the image after both translations, and keep an image of the target domain as it is.
    # The cycle loss goes through both generators; detaching fake_b here would cut off its gradient to a_to_b.
    if identity_weight:  # shares the pass of the translation: no layer mixes the samples of a batch
        fake_b, same_b = a_to_b(torch.cat([real_a, real_b])).chunk(2)
        fake_a, same_a = b_to_a(torch.cat([real_b, real_a])).chunk(2)
        identity_loss = F.l1_loss(same_b, real_b) + F.l1_loss(same_a, real_a)
    else:
        fake_b, fake_a = a_to_b(real_a), b_to_a(real_b)
    cycle_loss = F.l1_loss(b_to_a(fake_b), real_a) + F.l1_loss(a_to_b(fake_a), real_b)
    adversarial_loss = least_squares_generator_loss(discriminator_b(fake_b)) + least_squares_generator_loss(
        discriminator_a(fake_a)
    )
    g_loss = adversarial_loss + cycle_weight * cycle_loss
    if identity_weight:
        g_loss = g_loss + identity_weight * identity_loss
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[p for g in (a_to_b, b_to_a) for p in g.parameters() if p.requires_grad])
    optimizer_g.step()

    # Discriminators: tell real from fake, each in its own domain. detach() ends the graph at the fakes. The pools keep
    # some of them, and return past ones instead.
    logits_a = discriminator_a(torch.cat([real_a, pool_a.exchange(fake_a.detach())]))
    logits_b = discriminator_b(torch.cat([real_b, pool_b.exchange(fake_b.detach())]))
    d_loss = least_squares_discriminator_loss(*logits_a.chunk(2)) + least_squares_discriminator_loss(*logits_b.chunk(2))
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    results = {"d_loss": d_loss, "loss/adversarial": adversarial_loss, "loss/cycle": cycle_loss}
    if identity_weight:
        results["loss/identity"] = identity_loss
    return {name: value.detach() for name, value in results.items()}


@dataclass(frozen=True)
class CycleGANOptions(RunOptions):
    """Options of the CycleGAN: two domains, two generators and two discriminators."""

    batch_size: BatchSize = 8  # Images of each domain per step. 1 as published.
    steps: Count = 520  # Steps to train, each one update of all four networks.
    dataset: str = "mnist5k"  # A folder with trainA, trainB, testA and testB in it; or a data set of the GAN scripts.
    image_size: Pixels | None = None
    """Pixels a side, of the middle square of each image. None: 256 with trainA, 64 for a folder without, else as is."""
    width: Annotated[int, Range(1, 1024)] = 16  # Channels of the networks where they are narrowest. 64 as published.
    blocks: Annotated[int, Range(1, 100)] = 1
    """Residual blocks of each generator. 9 as published, 6 for 128 pixels and less."""
    halvings: Annotated[int, Range(1, 10)] = 2  # Halvings of the image in each discriminator. 3 as published.
    decay_from: Annotated[int, Range(0, 10**9)] | None = None
    """Steps before the learning rate falls linearly to zero. None: half of all."""
    lr: Rate = 1e-3  # Adam's learning rate, for all networks. 2e-4 as published.
    betas: tuple[Decay, Decay] = (0.5, 0.999)  # Adam's decay rates of the gradient's mean and of its square.
    cycle_weight: Weight = 3.0  # Weight of the cycle loss. 10 as published.
    identity_weight: Weight = 0.0  # Weight of the identity loss; 0 skips its passes. 5 as published.
    ema: Decay = 0.0  # Decay per step of the EMA of the generators, which translates; 0: no average.

    def make_networks(self, image_shape: tuple[int, int, int]) -> tuple[torch.nn.Module, ...]:
        """Return the networks of `cyclegan_networks`; raises BadInput for options that do not fit the images."""
        with as_bad_input("--image-size or --halvings", ValueError):
            return cyclegan_networks(image_shape, self.width, self.blocks, self.halvings)


def main(options: CycleGANOptions, run: Run) -> None:
    """Train all four networks."""
    decay_from = options.steps // 2 if options.decay_from is None else options.decay_from
    rate = linear_decay(options.steps, decay_from)
    images_a, images_b, test_a, test_b, are_outlines = load_domains(options.dataset, options.image_size)
    networks = options.make_networks(test_a.shape[1:])
    a_to_b, b_to_a, discriminator_a, discriminator_b = (network.to(run.device) for network in networks)
    generators = itertools.chain(a_to_b.parameters(), b_to_a.parameters())
    discriminators = itertools.chain(discriminator_a.parameters(), discriminator_b.parameters())
    optimizer_g = fused_adam(generators, options.lr, options.betas)
    optimizer_d = fused_adam(discriminators, options.lr, options.betas)
    for optimizer in (optimizer_g, optimizer_d):  # under torchrun, average the gradients over all ranks
        optimizer.register_step_pre_hook(run.ranks.average_gradients)
    average_ab, average_ba = (
        AveragedModel(g, multi_avg_fn=get_ema_multi_avg_fn(options.ema)) for g in (a_to_b, b_to_a)
    )
    pool_a, pool_b = (ImagePool(ranks=run.ranks, generator=run.generator) for _ in "ab")

    tests = enumerate((test_a, test_b))
    a, b = (next(batches(images, 8, options.seed + number)).to(run.device) for number, images in tests)
    pictures = {
        "a_to_b_to_a": lambda: torch.cat([a, average_ab(a), average_ba(average_ab(a))]),
        "b_to_a_to_b": lambda: torch.cat([b, average_ba(b), average_ab(average_ba(b))]),
        "identity_of_b_and_of_a": lambda: torch.cat([average_ab(b), average_ba(a)]),
    }
    state = {"a_to_b": a_to_b, "b_to_a": b_to_a, "average_a_to_b": average_ab, "average_b_to_a": average_ba}
    state |= {"discriminator_a": discriminator_a, "discriminator_b": discriminator_b}
    state |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d, "pool_a": pool_a, "pool_b": pool_b}
    for step, real_a, real_b in run.steps(images_a, images_b, state=state, pictures=pictures):
        draws = torch.rand(options.batch_size, 2, 3, generator=run.generator)[run.ranks.rows]
        draws_a, draws_b = draws.to(run.device, non_blocking=True).unbind(1)
        if not are_outlines:
            real_a, real_b = crop_and_flip(real_a, a.shape[-1], draws_a), crop_and_flip(real_b, a.shape[-1], draws_b)
        for optimizer in (optimizer_g, optimizer_d):
            optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * rate(step - 1)
        with run.precision():
            results = train_step(
                a_to_b,
                b_to_a,
                discriminator_a,
                discriminator_b,
                optimizer_g,
                optimizer_d,
                pool_a,
                pool_b,
                real_a,
                real_b,
                cycle_weight=options.cycle_weight,
                identity_weight=options.identity_weight,
            )
        average_ab.update_parameters(a_to_b)
        average_ba.update_parameters(b_to_a)
        if are_outlines and (step % options.sample_every == 0 or step == options.steps):
            results["translation/error"] = translation_error(average_ab, test_a, test_b, run.device)
        run.log(step, results)


@torch.no_grad()
def translation_error(translate, images, truth, device="cpu"):
    """Return the mean absolute error of `translate`, in brightness from 0 to 1, as a 0-d tensor.

    images, truth: uint8 (N, C, H, W).
    """
    translated = torch.cat([translate(to_float(part.to(device))) for part in images.split(100)])
    return (translated - to_float(truth.to(device))).abs().mean() / 2


if __name__ == "__main__":
    launch_run(__file__, main, CycleGANOptions)
