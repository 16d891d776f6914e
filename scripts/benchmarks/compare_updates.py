"""What a step of each update order costs: time, arithmetic, memory, and gradients that no optimizer uses.

Every order trains copies of the same networks on the same data and noise; the orders take turns within one run.
"textbook" is an order as it is usually written, with plain `backward()`.

The table gives FLOPs as multiples of a forward pass of the generator (G) and the discriminator (D) over a batch. g and
d are the parts of G and D that their first layers take. In the backward pass a layer costs its forward pass once for
the gradient of its weights and once for that of its input. Noise and images need no gradient, so a first layer fed
with them saves the second. "needed" is what an order costs if it computes no gradient that no optimizer uses.

Where D's gradient at its input is itself differentiated, l and s come in. Back through D to the input costs D; back
through that, 2D less l, the part of D's last layer, whose incoming gradient is constant; then, together with D's loss,
through D's forward pass, or without a loss from D's last activation on: less 2l. (For a D of linear layers and
LeakyReLU this last pass gives zeros, computed all the same.) s is what PyTorch's second derivative of a convolution
computes and cuts off: where the filters of 3x3 leave the last row out, the gradient of 4x4. Nobody needs it.
`wgan_gp` and `r3, every 5th` are means over five steps, of which one trains G, or takes the penalties.

    update order               forward     back through D    back through G    sum                  needed
    retain_graph                G + 3D     6D -  d           4G - 2g           5G + 9D - 2g -  d    detach's
    detach, textbook            G + 3D     6D - 2d           2G -  g           3G + 9D -  g - 2d    detach's
    detach                      G + 3D     5D - 2d           2G -  g           3G + 8D -  g - 2d    the sum
    generator_first, textbook   G + 3D     6D - 2d           2G -  g           3G + 9D -  g - 2d    detach's
    generator_first             G + 3D     5D - 2d           2G -  g           3G + 8D -  g - 2d    the sum
    resample                   2G + 3D     5D - 2d           2G -  g           4G + 8D -  g - 2d    the sum
    simultaneous                G + 2D     5D - 2d           2G -  g           3G + 7D -  g - 2d    the sum
    one_stage                   G + 2D     4D -  d           2G -  g           3G + 6D -  g -  d    the sum
    wgan_gp, no penalty   G + 2.2D   4.2D - 2d                 0.4G - 0.2g   1.4G + 6.4D - 0.2g - 2d             the sum
    wgan_gp               G + 3.2D   9.2D - 3d - 3l + s        0.4G - 0.2g   1.4G + 12.4D - 0.2g - 3d - 3l + s   less s
    r3, no penalty        G + 4D     5D - 2d                   2G - g        3G + 9D - g - 2d                    the sum
    r3, every 5th         G + 4D     6.2D - 2d - 0.4l + 0.4s   2G - g        3G + 10.2D - g - 2d - 0.4l + 0.4s   less s
    r3                    G + 4D     11D - 2d - 2l + 2s        2G - g        3G + 15D - g - 2d - 2l + 2s         less s

    python scripts/benchmarks/compare_updates.py
    python scripts/benchmarks/compare_updates.py --model mlp --output table.md table.json
"""

import copy
import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
from annotated_types import Ge, Le, MinLen
from torch import Tensor
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import batches
from common.errors import BadInput
from common.images.load import load_images
from common.losses import discriminator_loss, generator_loss
from common.models import MODELS
from common.optimizers import fused_adam
from common.run.command_line import launch
from common.run.folder import check_new_file, shown, write_whole
from common.run.markdown import table
from common.run.option_values import Count, Pixels, check_numbers, kept
from common.run.options import GanOptions, pick_device
from gradient_audit import GradientAudit
from scripts import (
    gan_detach,
    gan_generator_first,
    gan_one_stage,
    gan_r3,
    gan_resample,
    gan_retain_graph,
    gan_simultaneous,
    gan_wgan_gp,
)
from scripts.benchmarks.step_cost import (
    PHASES,
    Flops,
    LiveTensors,
    Phases,
    clock,
    conditions,
    environment,
    exponent,
    forward_flops,
    quartiles,
    second_derivative_flops,
    seconds_in_turns,
    speeds,
    spread,
)

STEPS_PER_TURN = 5
GROWTH_REPEATS = 3
EXPONENTS = ("exponent of ms", "exponent of flops", "exponent of peak_bytes")


@dataclass(frozen=True)
class Options:
    """Options of the comparison."""

    model: Literal["conv", "mlp"] = "conv"
    """Convolutional networks, or fully connected ones."""
    image_size: Pixels = 28
    """Pixels a side of the shipped digits."""
    batch_size: Annotated[int, Ge(1), Le(2**20)] = GanOptions.batch_size
    """Images per step."""
    repeats: Count = 20
    """Turns of each order, of five steps each."""
    doublings: Annotated[int, Ge(1), Le(8)] | None = 2
    """How often batch and image size are doubled to see how cost grows. None leaves that out."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""
    output: Annotated[tuple[Path, ...], MinLen(1)] | None = None
    """New files for the result: a .md, a .json, or both."""


def textbook_detach(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """`gan_detach.py` as it is usually written: G's loss leaves gradients in D, which the next zero_grad() clears."""
    fake = generator(z)
    optimizer_d.zero_grad()
    d_loss = discriminator_loss(discriminator(real), discriminator(fake.detach()))
    d_loss.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    g_loss = generator_loss(discriminator(fake))
    g_loss.backward()
    optimizer_g.step()
    return {"d_loss": d_loss.detach(), "g_loss": g_loss.detach()}


def textbook_generator_first(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """`gan_generator_first.py` as it is usually written."""
    fake = generator(z)
    optimizer_g.zero_grad()
    g_loss = generator_loss(discriminator(fake))
    g_loss.backward()
    optimizer_g.step()

    optimizer_d.zero_grad()
    d_loss = discriminator_loss(discriminator(real), discriminator(fake.detach()))
    d_loss.backward()
    optimizer_d.step()
    return {"d_loss": d_loss.detach(), "g_loss": g_loss.detach()}


@dataclass(frozen=True)
class Order:
    """An update order: its step, and the multiples of (G, D, g, d, l, s) that it costs and that it needs.

    Zeros at the end may be left out. All are means over `period` steps, after which the order repeats itself.
    """

    train_step: Callable
    cost: tuple[float, ...]
    needed: tuple[float, ...]
    period: int = 1


def in_turn(*train_steps: Callable) -> Callable:
    """Return a step that is each of `train_steps` in turn."""
    turns = cycle(train_steps)
    return lambda *given: next(turns)(*given)


CRITIC, BOTH = (partial(gan_wgan_gp.train_step, train_generator=trained) for trained in (False, True))
PLAIN_CRITIC, PLAIN_BOTH = (partial(step, penalty_weight=0.0) for step in (CRITIC, BOTH))
PLAIN_R3 = partial(gan_r3.train_step, penalty_weight=0.0)
LAZY_R3 = partial(gan_r3.train_step, penalty_weight=5.0)


BASELINE = "detach, textbook"
DETACH = (3, 8, -1, -2)
ORDERS = {
    "retain_graph": Order(gan_retain_graph.train_step, (5, 9, -2, -1), DETACH),
    BASELINE: Order(textbook_detach, (3, 9, -1, -2), DETACH),
    "detach": Order(gan_detach.train_step, DETACH, DETACH),
    "generator_first, textbook": Order(textbook_generator_first, (3, 9, -1, -2), DETACH),
    "generator_first": Order(gan_generator_first.train_step, DETACH, DETACH),
    "resample": Order(gan_resample.train_step, (4, 8, -1, -2), (4, 8, -1, -2)),
    "simultaneous": Order(gan_simultaneous.train_step, (3, 7, -1, -2), (3, 7, -1, -2)),
    "one_stage": Order(gan_one_stage.train_step, (3, 6, -1, -1), (3, 6, -1, -1)),
    "wgan_gp, no penalty": Order(
        in_turn(*[PLAIN_CRITIC] * 4, PLAIN_BOTH), (1.4, 6.4, -0.2, -2), (1.4, 6.4, -0.2, -2), period=5
    ),
    "wgan_gp": Order(in_turn(*[CRITIC] * 4, BOTH), (1.4, 12.4, -0.2, -3, -3, 1), (1.4, 12.4, -0.2, -3, -3), period=5),
    "r3, no penalty": Order(PLAIN_R3, (3, 9, -1, -2), (3, 9, -1, -2)),
    "r3, every 5th": Order(
        in_turn(*[PLAIN_R3] * 4, LAZY_R3), (3, 10.2, -1, -2, -0.4, 0.4), (3, 10.2, -1, -2, -0.4), period=5
    ),
    "r3": Order(gan_r3.train_step, (3, 15, -1, -2, -2, 2), (3, 15, -1, -2, -2)),
}


class Contender:
    """A step, and the networks and optimizers that it trains."""

    def __init__(self, train_step, generator, discriminator):
        """Copy the networks."""
        self.train_step = train_step
        self.networks = copy.deepcopy(generator), copy.deepcopy(discriminator)
        self.optimizers = [fused_adam(n.parameters(), 1e-3, (0.5, 0.999)) for n in self.networks]

    def step(self, real: Tensor, z: Tensor) -> None:
        """One update of each network."""
        self.train_step(*self.networks, *self.optimizers, real, z)

    def steps(self, count: int, real: Tensor, z: Tensor) -> None:
        """Do `count` steps on the same batch."""
        for _ in range(count):
            self.step(real, z)

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors kept between steps: weights, buffers, gradients, the optimizers' state."""
        for network, optimizer in zip(self.networks, self.optimizers, strict=True):
            yield from (*network.parameters(), *network.buffers())
            yield from (p.grad for p in network.parameters() if p.grad is not None)
            yield from (value for state in optimizer.state.values() for value in state.values())

    def peak_bytes(self, count: int, real: Tensor, z: Tensor) -> int:
        """Return the most bytes of live tensors during `count` steps."""
        with LiveTensors([*self.tensors(), real, z]) as live:
            self.steps(count, real, z)
        return live.peak

    def phases(self, count: int, real: Tensor, z: Tensor, meter: Callable[[], float]) -> dict[str, float]:
        """Return what each phase of a step takes by `meter`, the mean over `count` steps."""
        with Phases(*self.networks, meter) as phases:
            self.steps(count, real, z)
        return {phase: taken / count for phase, taken in phases.taken.items()}

    def wasted(self, count: int, real: Tensor, z: Tensor) -> str:
        """Return which networks got gradients that no optimizer used in `count` steps, and what computed them."""
        with GradientAudit(G=self.networks[0], D=self.networks[1]) as audit:
            self.steps(count, real, z)
        return ", ".join(f"{name} by `{p.code}`" for p in audit.passes for name in p.cells if p.cells[name] == "wasted")


def measure(model: str, image_size: int, batch_size: int, repeats: int, device: torch.device) -> dict[str, dict]:
    """Return what a step of each order costs, all from the same initial weights, on the same data and noise.

    `flops`, `needed` (FLOPs) and `peak_bytes` are counted. `ms` is the median over the turns, `quartiles` its spread.
    `speed` is the median over the turns of the time of BASELINE divided by the order's own, `speed_quartiles` its
    spread. `flops_by_phase` and `ms_by_phase` have the parts that `Phases` tells apart, the latter from turns of their
    own.
    """
    torch.manual_seed(0)
    images = load_images("mnist5k", image_size).to(device)
    generator, discriminator = (n.to(device) for n in MODELS[model](tuple(images.shape[1:]), GanOptions.z_dim))
    contenders = {name: Contender(order.train_step, generator, discriminator) for name, order in ORDERS.items()}
    reals = batches(images, batch_size, seed=0)
    stream = ((real, torch.randn(batch_size, GanOptions.z_dim, device=device)) for real in reals)

    batch = next(stream)
    forward = forward_costs(generator, discriminator, *batch)
    rows = {}
    for name, contender in contenders.items():
        steps = ORDERS[name].period, *batch
        contender.steps(*steps)  # afterwards gradients and the optimizers' state exist, as in the middle of a run
        rows[name] = {
            "needed": dot(ORDERS[name].needed, forward),
            "peak_bytes": contender.peak_bytes(*steps),
            "wasted": contender.wasted(*steps),
        }
        with Flops() as counter:
            rows[name]["flops_by_phase"] = contender.phases(*steps, lambda counter=counter: counter.total)
        rows[name]["flops"] = round(sum(rows[name]["flops_by_phase"].values()))

    turns = (list(islice(stream, 1 + STEPS_PER_TURN)) for _ in range(repeats))
    bar = tqdm(turns, f"{image_size} pixels, batches of {batch_size}", repeats, unit="turn", leave=False)
    seconds = seconds_in_turns({name: contender.step for name, contender in contenders.items()}, bar, device)
    for name, row in rows.items():
        row["ms"] = 1e3 * median(seconds[name])
        row["quartiles"] = [1e3 * quartile for quartile in quartiles(seconds[name])]
        ratios = speeds(seconds[BASELINE], seconds[name])
        row["speed"], row["speed_quartiles"] = median(ratios), quartiles(ratios)
        row["images_per_second"] = batch_size / median(seconds[name])

    parts = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            parts[name].append(contender.phases(ORDERS[name].period, *batch, partial(clock, device)))
    for name, row in rows.items():
        row["ms_by_phase"] = {phase: 1e3 * median(part[phase] for part in parts[name]) for phase in PHASES}
    return rows


def forward_costs(generator, discriminator, real: Tensor, z: Tensor) -> tuple[int, ...]:
    """Return G, D, g, d, l and s: the FLOPs of a forward pass of either network over a batch, and of parts of it."""
    (whole_g, first_g), (whole_d, first_d) = forward_flops(generator, z), forward_flops(discriminator, real)
    return whole_g, whole_d, first_g, first_d, *second_derivative_flops(discriminator, real)


def dot(multiples: tuple[float, ...], forward: tuple[int, ...]) -> int:
    """Return the FLOPs of a cost given in multiples of (G, D, g, d, l, s)."""
    return round(sum(multiple * flops for multiple, flops in zip(multiples, forward, strict=False)))


def growth(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the milliseconds of each order as batch and image size are doubled, and the exponents of its growth."""
    factors = [2**k for k in range(options.doublings + 1)]
    sizes = {
        "batch size": [(options.image_size, options.batch_size * factor) for factor in factors],
        "image size": [(options.image_size * factor, options.batch_size) for factor in factors],
    }
    costs = {}
    for size in dict.fromkeys(chain(*sizes.values())):
        costs[size] = measure(options.model, *size, GROWTH_REPEATS, device)

    def grown(name: str, column: str, what: str) -> list[float]:
        return [costs[size][name][column] for size in sizes[what]]

    return {
        what: {
            name: {"ms": grown(name, "ms", what)}
            | {f"exponent of {column}": exponent(grown(name, column, what)) for column in ("ms", "flops", "peak_bytes")}
            for name in ORDERS
        }
        for what in sizes
    }


def report(result: dict) -> str:
    """Return the result as Markdown."""
    options = result["options"]
    size, batch = options["image_size"], options["batch_size"]
    head = ["update order", "ms per step", "speed", "GFLOPs", "wasted", "wasted gradients", "peak MB", "images/s"]
    parts = [
        conditions(result["environment"]),
        f"`{options['model']}`, {size}x{size} pixels, batches of {batch}: medians over {options['repeats']} turns of "
        f'{STEPS_PER_TURN} steps, quartiles in brackets. Speed is in multiples of "{BASELINE}". GFLOPs and the peak of '
        "live tensors are counted, not timed. Wasted is the share of the GFLOPs that the order does not need.",
        table(head, [cells(name, row) for name, row in result["orders"].items()]),
    ]
    for what, orders in result["growth"].items():
        start = batch if what == "batch size" else size
        head = [f"ms by {what}", *(str(start << k) for k in range(options["doublings"] + 1)), *EXPONENTS]
        rows = [
            [name, *(f"{ms:.1f}" for ms in row["ms"]), *(f"{row[exponent]:.2f}" for exponent in EXPONENTS)]
            for name, row in orders.items()
        ]
        parts.append(table(head, rows))
    return "\n\n".join(parts) + "\n"


def cells(name: str, row: dict) -> list[str]:
    """Return an update order's row of the first table."""
    return [
        name,
        spread(row["ms"], row["quartiles"]),
        spread(row["speed"], row["speed_quartiles"]),
        f"{row['flops'] / 1e9:.3f}",
        f"{1 - row['needed'] / row['flops']:.1%}",
        row["wasted"] or "-",
        f"{row['peak_bytes'] / 1e6:.1f}",
        f"{row['images_per_second']:,.0f}",
    ]


def check(options: Options) -> None:
    """Raise BadInput for options that cannot work, before anything is measured."""
    check_numbers(options)
    for path in options.output or ():
        check_new_file(path, ".md", ".json")
    with torch.device("meta"):  # takes no memory
        MODELS[options.model]((1, options.image_size, options.image_size), GanOptions.z_dim)
        largest = options.image_size << (options.doublings or 0)
        try:
            MODELS[options.model]((1, largest, largest), GanOptions.z_dim)
        except ValueError as error:
            raise BadInput(f"--doublings {options.doublings}: takes the images too far; {error}") from None


def main(options: Options) -> None:
    """Measure, print the tables, and write them to files if asked for."""
    check(options)
    device = pick_device(options.device)
    result = {
        "environment": environment(device),
        "options": kept(options, "output"),
        "orders": measure(options.model, options.image_size, options.batch_size, options.repeats, device),
        "growth": growth(options, device) if options.doublings else {},
    }
    text = {".md": report(result), ".json": json.dumps(result, indent=2) + "\n"}
    print(text[".md"])
    for path in options.output or ():
        write_whole(path, lambda file, path=path: file.write(text[path.suffix].encode()))
        print(f"Written: {shown(path)}")


if __name__ == "__main__":
    launch(main, Options)
