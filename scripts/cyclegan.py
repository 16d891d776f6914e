"""CycleGAN: two generators under one optimizer, two discriminators under another, chained with `itertools.chain`.

A to B and B to A are learned together from unpaired images: each generator must fool the other domain's discriminator
and undo the other generator. The cycle loss flows through both generators, so nothing is detached between them; the
discriminators learn from detached fakes.

    a ── G_ab ── fake_b ─┬─ D_b ─────── adversarial ─┐
                         ├─ G_ba ── a ─ cycle        ├─ one backward to G_ab and G_ba; optimizer_g steps both
    b ── G_ab ── b ──────┼───────────── identity ────┘
                         └─ detach ── D_b ── d_loss     backward to D_a and D_b; optimizer_d steps both
    and the same with a and b exchanged.

    python scripts/cyclegan.py
"""

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `common` is found from any folder

from common.command_line import launch
from common.data import batches, load_domains
from common.losses import least_squares_discriminator_loss, least_squares_generator_loss
from common.models import cyclegan_networks
from common.training_run import RunOptions, TrainingRun

CYCLE_WEIGHT, IDENTITY_WEIGHT = 10, 5


def train_step(a_to_b, b_to_a, discriminator_a, discriminator_b, optimizer_g, optimizer_d, real_a, real_b):
    """One update of all four networks.

    real_a, real_b: (N, C, H, W) in [-1, 1], unpaired. optimizer_g holds both generators, optimizer_d both
    discriminators. Returns 0-d tensors, detached, still on the device: the losses, each summed over the two domains
    and without its weight.
    """
    fake_b, fake_a = a_to_b(real_a), b_to_a(real_b)

    # Generators: fool D, come back after a round trip, leave alone what is in the right domain already. The cycle
    # goes through both, so that detaching fake_b here would cut a_to_b off from it.
    adversarial_loss = least_squares_generator_loss(discriminator_b(fake_b)) + least_squares_generator_loss(
        discriminator_a(fake_a)
    )
    cycle_loss = F.l1_loss(b_to_a(fake_b), real_a) + F.l1_loss(a_to_b(fake_a), real_b)
    identity_loss = F.l1_loss(a_to_b(real_b), real_b) + F.l1_loss(b_to_a(real_a), real_a)
    g_loss = adversarial_loss + CYCLE_WEIGHT * cycle_loss + IDENTITY_WEIGHT * identity_loss
    optimizer_g.zero_grad()
    g_loss.backward(inputs=[*a_to_b.parameters(), *b_to_a.parameters()])
    optimizer_g.step()

    # Discriminators: tell real from fake, each in its own domain. detach() ends the graph at the fakes.
    d_loss = least_squares_discriminator_loss(
        discriminator_a(real_a), discriminator_a(fake_a.detach())
    ) + least_squares_discriminator_loss(discriminator_b(real_b), discriminator_b(fake_b.detach()))
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
    return {
        "d_loss": d_loss.detach(),
        "adversarial_loss": adversarial_loss.detach(),
        "cycle_loss": cycle_loss.detach(),
        "identity_loss": identity_loss.detach(),
    }


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the CycleGAN; its domains are every other image of the data set, and the outlines of the rest."""

    batch_size: int = 4
    """Images of each domain per step."""
    steps: int = 1000
    """Steps to train, each one update of all four networks."""
    lr: float = 2e-4
    """Adam's learning rate, for all networks."""
    betas: tuple[float, float] = (0.5, 0.999)
    """Adam's decay rates of the gradient's mean and of its square."""
    width: int = 16
    """Channels of the generators at full size, and of the discriminators at half size. 64 as published."""
    blocks: int = 2
    """Residual blocks of each generator. 6 or 9 as published."""
    halvings: int = 2
    """Halvings of the image in each discriminator. 3 as published, where a logit sees 70 x 70 pixels."""


def main(options: Options) -> None:
    """Train all four networks."""
    run = TrainingRun(__file__, options)
    images_a, images_b = (images.to(run.device) for images in load_domains(options.dataset, options.image_size))
    networks = cyclegan_networks(tuple(images_a.shape[1:]), options.width, options.blocks, options.halvings)
    a_to_b, b_to_a, discriminator_a, discriminator_b = (run.place(network) for network in networks)
    generators = itertools.chain(a_to_b.parameters(), b_to_a.parameters())
    discriminators = itertools.chain(discriminator_a.parameters(), discriminator_b.parameters())
    optimizer_g = torch.optim.Adam(generators, lr=options.lr, betas=options.betas, fused=True)
    optimizer_d = torch.optim.Adam(discriminators, lr=options.lr, betas=options.betas, fused=True)

    a, b = next(batches(images_a, 8, options.seed)), next(batches(images_b, 8, options.seed))
    run.show(
        a_to_b_to_a=lambda: torch.cat([a, a_to_b(a), b_to_a(a_to_b(a))]),
        b_to_a_to_b=lambda: torch.cat([b, b_to_a(b), a_to_b(b_to_a(b))]),
    )
    run.keep(
        a_to_b=a_to_b,
        b_to_a=b_to_a,
        discriminator_a=discriminator_a,
        discriminator_b=discriminator_b,
        optimizer_g=optimizer_g,
        optimizer_d=optimizer_d,
    )
    players = a_to_b, b_to_a, discriminator_a, discriminator_b, optimizer_g, optimizer_d
    for step, real_a, real_b in run.steps(images_a, images_b):
        run.log(step, train_step(*players, real_a, real_b))


if __name__ == "__main__":
    launch(main, Options)
