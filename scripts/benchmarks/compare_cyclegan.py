"""What CycleGAN's step gains over its plain arrangement; all arrangements train the same networks, in turns.

"plain" computes translation, identity and cycle in separate passes, and D's real images and fakes, too. Its plain
`backward()` leaves gradients of the generators' loss in the discriminators. "plain, nothing wasted" does not compute
those gradients. `cyclegan.py` does not either, and inputs share passes.

The table gives FLOPs of a step as multiples of a forward pass of a generator (G) and a discriminator (D) over a batch.
g and d are the parts of G and D that their first layers take. In the backward pass a layer costs its forward pass once
for the gradient of its weights and once for that of its input; real images need no gradient. "needed" is what a step
costs if it computes no gradient that no optimizer uses. Sharing a pass saves no FLOPs.

    arrangement              forward      back through D    back through G    sum
    plain                    6G + 6D      12D - 4d          12G - 4g          18G + 18D - 4g - 4d
    plain, nothing wasted    6G + 6D      10D - 4d          12G - 4g          18G + 16D - 4g - 4d, needed
    cyclegan.py              6G + 6D      10D - 4d          12G - 4g          18G + 16D - 4g - 4d, needed

    python scripts/benchmarks/compare_cyclegan.py
    python scripts/benchmarks/compare_cyclegan.py --image-size 28 --channels 1 --width 16 --blocks 2 --halvings 2 \
        --batch-size 8
"""

import copy
import signal
import sys
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Annotated

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
import torch.nn.functional as F
from annotated_types import Ge, Le
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.cyclegan_models import cyclegan_networks
from common.images.pool import ImagePool
from common.losses import least_squares_discriminator_loss, least_squares_generator_loss
from common.optimizers import fused_adam
from common.run.command_line import launch
from common.run.markdown import table
from common.run.option_values import Count, Pixels, check_numbers
from common.run.options import pick_device
from gradient_audit import GradientAudit
from scripts import cyclegan
from scripts.benchmarks.step_cost import (
    conditions,
    count_flops,
    environment,
    forward_flops,
    quartiles,
    seconds_in_turns,
    speeds,
    spread,
)

PLAYERS = "a_to_b", "b_to_a", "discriminator_a", "discriminator_b"


@dataclass(frozen=True)
class Options:
    """Options of the comparison; the default networks are those published for images of 128 pixels."""

    image_size: Pixels = 128
    """Pixels a side."""
    channels: Annotated[int, Ge(1), Le(1024)] = 3
    """Channels of the images."""
    batch_size: Annotated[int, Ge(1), Le(2**20)] = 1
    """Images of each domain per step."""
    width: Annotated[int, Ge(1), Le(1024)] = 64
    """Channels of the generators at full size, and of the discriminators at half size."""
    blocks: Count = 6
    """Residual blocks of each generator."""
    halvings: Count = 3
    """Halvings of the image in each discriminator."""
    repeats: Count = 10
    """Turns of each arrangement, of two steps each."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def plain_step(a_to_b, b_to_a, d_a, d_b, optimizer_g, optimizer_d, pool_a, pool_b, real_a, real_b, waste=True):
    """Update as `cyclegan.py`, as usually written; without `waste`, D gets no gradient of the generators' loss."""
    fake_b, fake_a = a_to_b(real_a), b_to_a(real_b)
    identity_loss = F.l1_loss(a_to_b(real_b), real_b) + F.l1_loss(b_to_a(real_a), real_a)
    adversarial_loss = least_squares_generator_loss(d_b(fake_b)) + least_squares_generator_loss(d_a(fake_a))
    cycle_loss = F.l1_loss(b_to_a(fake_b), real_a) + F.l1_loss(a_to_b(fake_a), real_b)
    optimizer_g.zero_grad()
    loss = adversarial_loss + 10 * cycle_loss + 5 * identity_loss
    loss.backward(inputs=None if waste else [*a_to_b.parameters(), *b_to_a.parameters()])
    optimizer_g.step()

    optimizer_d.zero_grad()
    least_squares_discriminator_loss(d_a(real_a), d_a(pool_a.exchange(fake_a.detach()))).backward()
    least_squares_discriminator_loss(d_b(real_b), d_b(pool_b.exchange(fake_b.detach()))).backward()
    optimizer_d.step()


BASELINE = "plain"
ARRANGEMENTS = {
    BASELINE: plain_step,
    "plain, nothing wasted": partial(plain_step, waste=False),
    "cyclegan.py": partial(cyclegan.train_step, identity_weight=5.0),
}


def contender(train_step, networks):
    """Return copies of the networks, and a step that trains them, with its own optimizers and pools."""
    networks = copy.deepcopy(networks)
    optimizers = [
        fused_adam(chain(*(n.parameters() for n in pair)), 2e-4, (0.5, 0.999)) for pair in (networks[:2], networks[2:])
    ]
    return networks, partial(train_step, *networks, *optimizers, ImagePool(), ImagePool())


def measure(options: Options, device: torch.device) -> dict[str, dict]:
    """Return what a step of each arrangement costs.

    `flops` and `needed` are counted FLOPs, `wasted` names the networks whose gradients no optimizer used, and `seconds`
    is the time of a step in each turn.
    """
    torch.manual_seed(0)
    shape = options.channels, options.image_size, options.image_size
    networks = [n.to(device) for n in cyclegan_networks(shape, options.width, options.blocks, options.halvings)]
    reals = torch.rand(2, options.batch_size, *shape, device=device) * 2 - 1
    (g, g_first), (d, d_first) = (forward_flops(network, reals[0]) for network in (networks[0], networks[2]))
    needed = 18 * g + 16 * d - 4 * g_first - 4 * d_first
    rows, steps = {}, {}
    for name, train_step in ARRANGEMENTS.items():
        copies, steps[name] = contender(train_step, networks)
        with GradientAudit(**dict(zip(PLAYERS, copies, strict=True))) as audit:
            flops = count_flops(partial(steps[name], *reals))
        wasted = {network for p in audit.passes for network, cell in p.cells.items() if cell == "wasted"}
        rows[name] = {"flops": flops, "needed": needed, "wasted": ", ".join(sorted(wasted))}

    turns = tqdm([[tuple(reals)] * 3] * options.repeats, "turns", leave=False)
    for name, seconds in seconds_in_turns(steps, turns, device).items():
        rows[name]["seconds"] = seconds
    return rows


def main(options: Options) -> None:
    """Measure and print a table."""
    check_numbers(options)
    device = pick_device(options.device)
    rows = measure(options, device)
    print(conditions(environment(device)) + "\n")
    lines = []
    for name, row in rows.items():
        milliseconds = [1e3 * seconds for seconds in row["seconds"]]
        times = spread(median(milliseconds), quartiles(milliseconds), ".1f")
        ratios = speeds(rows[BASELINE]["seconds"], row["seconds"])
        speed = spread(median(ratios), quartiles(ratios))
        share = f"{1 - row['needed'] / row['flops']:.1%}"
        lines.append([name, times, speed, f"{row['flops'] / 1e9:.3f}", share, row["wasted"] or "-"])
    print(table(["arrangement", "ms per step, quartiles", "speed", "GFLOPs", "wasted", "wasted gradients"], lines))


if __name__ == "__main__":
    launch(main, Options)
