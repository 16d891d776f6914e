"""What a step costs: time, arithmetic, and gradients that no optimizer uses. `--what` names a comparison.

    orders      the update orders; "textbook" is an order as it is usually written, with plain `backward()`
    audit       the step of `gan_detach.py` under `GradientAudit`, which watches its first steps in detail

All contenders of a comparison train copies of the same networks on the same data and noise; they take turns within one
run. Figures are medians over the turns, with the smallest and the largest in brackets; FLOPs are counted, not timed,
and "wasted" is the share of them that the step does not need.

    python scripts/benchmarks/compare_updates.py
    python scripts/benchmarks/compare_updates.py --what audit --model mlp
    python scripts/benchmarks/compare_updates.py --networks my_gan.py:make_networks --dataset my_images

`ORDERS` has the FLOPs of each order as multiples of a forward pass of the generator (G) and the discriminator (D) over
a batch; g and d are the parts of G and D that their first layers take, l that of D's last one. In the backward pass a
layer costs its forward pass once for the gradient of its weights and once for that of its input, which a first layer
fed with images or noise saves. Where D's gradient at its input is itself differentiated, back through D to the input
costs D; back through that, 2D less l, whose incoming gradient is constant; then, together with D's loss, through D's
forward pass, or without a loss from D's last activation on: less 2l. The count is higher where the filters of a
convolution leave out a row: PyTorch's second derivative then computes bigger filters and cuts them off.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import torch
from annotated_types import Ge, Le
from torch import Tensor, nn
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import batches
from common.errors import BadInput, blame
from common.images.load import load_images
from common.losses import discriminator_loss, generator_loss
from common.models import MODELS
from common.optimizers import fused_adam
from common.run.command_line import launch
from common.run.folder import check_new_file
from common.run.markdown import table
from common.run.option_values import Count, checked
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
from scripts.benchmarks.harness import (
    ComparisonOptions,
    conditions,
    seconds_in_turns,
    seconds_per_call,
    spread,
    timings,
    write_result,
)
from scripts.benchmarks.step_cost import count_flops
from scripts.tools.finished_run import make_own_networks

STEPS_PER_TURN = 5
DETAILED_STEPS = 6  # of two backward passes, which an audit watches in detail
LATER_STEPS = 20


@dataclass(frozen=True)
class Options(ComparisonOptions):
    """Options of the comparison."""

    what: Literal["orders", "audit"] = "orders"
    """The contenders: update orders, or a step under an audit."""
    batch_size: Annotated[int, Ge(1), Le(2**20)] = GanOptions.batch_size
    """Images per step."""
    repeats: Count = 20
    """Turns of each contender."""
    output: Path | None = None
    """New .json file for the figures."""


class Contender(NamedTuple):
    """A step, called with a batch (real, z), and the networks that it trains."""

    step: Callable[..., object]
    networks: dict[str, nn.Module]


def gan_contender(train_step: Callable, networks: list[nn.Module]) -> Contender:
    """Return a contender that trains copies of the networks G and D with `train_step`."""
    networks = copy.deepcopy(networks)
    optimizers = [fused_adam(network.parameters(), 1e-3, (0.5, 0.999)) for network in networks]
    return Contender(partial(train_step, *networks, *optimizers), dict(zip("GD", networks, strict=True)))


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


@dataclass(frozen=True)
class Order:
    """An update order: its step, and what a step costs and needs, in multiples of (G, D, g, d, l).

    needed: the cost without the gradients that no optimizer uses; None where that is all. period: steps after which
    the order repeats itself; the multiples are means over them. Zeros at the end are left out.
    """

    train_step: Callable
    cost: tuple[float, ...]
    needed: tuple[float, ...] | None = None
    period: int = 1


def in_turn(*train_steps: Callable) -> Callable:
    """Return a step that is each of `train_steps` in turn."""
    turns = cycle(train_steps)
    return lambda *given: next(turns)(*given)


CRITIC, BOTH = (partial(gan_wgan_gp.train_step, train_generator=trained) for trained in (False, True))
PLAIN_CRITIC, PLAIN_BOTH = (partial(step, penalty_weight=0.0) for step in (CRITIC, BOTH))
PLAIN_R3 = partial(gan_r3.train_step, penalty_weight=0.0)
LAZY_R3 = partial(gan_r3.train_step, penalty_weight=5.0)
APPROXIMATE_R3 = partial(gan_r3.train_step, penalty="approximate")

BASELINE = "detach, textbook"
DETACH = (3, 8, -1, -2)
ORDERS = {
    "retain_graph": Order(gan_retain_graph.train_step, (5, 9, -2, -1), DETACH),
    BASELINE: Order(textbook_detach, (3, 9, -1, -2), DETACH),
    "detach": Order(gan_detach.train_step, DETACH),
    "generator_first": Order(gan_generator_first.train_step, DETACH),
    "resample": Order(gan_resample.train_step, (4, 8, -1, -2)),
    "simultaneous": Order(gan_simultaneous.train_step, (3, 7, -1, -2)),
    "one_stage": Order(gan_one_stage.train_step, (3, 6, -1, -1)),
    "wgan_gp, no penalty": Order(in_turn(*[PLAIN_CRITIC] * 4, PLAIN_BOTH), (1.4, 6.4, -0.2, -2), period=5),
    "wgan_gp": Order(in_turn(*[CRITIC] * 4, BOTH), (1.4, 12.4, -0.2, -3, -3), period=5),
    "r3, no penalty": Order(PLAIN_R3, (3, 9, -1, -2)),
    "r3, every 5th": Order(in_turn(*[PLAIN_R3] * 4, LAZY_R3), (3, 10.2, -1, -2, -0.4), period=5),
    "r3, approximate": Order(APPROXIMATE_R3, (3, 15, -1, -4)),
    "r3": Order(gan_r3.train_step, (3, 15, -1, -2, -2)),
}


def forward_costs(generator: nn.Module, discriminator: nn.Module, real: Tensor, z: Tensor) -> tuple[int, ...]:
    """Return G, D, g, d and l: the FLOPs of a forward pass of either network over a batch, and of parts of it."""
    g, d = count_flops(lambda: generator(z)), count_flops(lambda: discriminator(real))
    return sum(g), sum(d), g[0], d[0], d[-1]


def dot(multiples: tuple[float, ...], forward: tuple[int, ...]) -> int:
    """Return the FLOPs of a cost given in multiples of what `forward_costs` returns."""
    return round(sum(multiple * flops for multiple, flops in zip(multiples, forward, strict=False)))


def images_and_networks(
    options: Options, device: torch.device
) -> tuple[Iterator[tuple[Tensor, Tensor]], list[nn.Module]]:
    """Return a stream of batches, (real, z), and new networks G and D."""
    images = load_images(options.dataset, options.image_size).to(device)
    torch.manual_seed(0)
    make_networks = partial(make_own_networks, options.networks) if options.networks else MODELS[options.model]
    with blame("--image-size"):
        networks = make_networks(tuple(images.shape[1:]), options.z_dim)
    reals = batches(images, options.batch_size, seed=0)
    stream = ((real, torch.randn(len(real), options.z_dim, device=device)) for real in reals)
    return stream, [network.to(device) for network in networks]


def compare_orders(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of the update orders; `why` has the reason of one that cannot train the networks."""
    stream, networks = images_and_networks(options, device)
    batch = next(stream)
    counts, refusals = {}, {}
    for name, order in ORDERS.items():
        try:
            counts[name] = count(order, networks, batch)
        except (ValueError, RuntimeError) as error:
            refusals[name] = {"why": str(error).splitlines()[0]}
    if BASELINE in refusals:
        raise BadInput(f"--networks {options.networks}: {refusals[BASELINE]['why']}")
    if counts[BASELINE]["flops"] != dot(ORDERS[BASELINE].cost, forward_costs(*networks, *batch)):
        for figures in counts.values():
            figures["needed"] = None  # they multiply matrices elsewhere than in linear layers and convolutions
    contenders = {name: gan_contender(ORDERS[name].train_step, networks) for name in counts}
    for contender in tqdm(contenders.values(), "first steps", leave=False):
        repeat_step(contender, batch, STEPS_PER_TURN)  # the first ones are slow
    turns = (list(islice(stream, 1 + STEPS_PER_TURN)) for _ in range(options.repeats))
    bar = tqdm(turns, options.what, options.repeats, unit="turn", leave=False)
    steps = {name: contender.step for name, contender in contenders.items()}
    rows = timings(seconds_in_turns(steps, bar, device), BASELINE)
    return {name: refusals.get(name) or counts[name] | rows[name] for name in ORDERS}


def count(order: Order, networks: list[nn.Module], batch: tuple[Tensor, Tensor]) -> dict:
    """Return the figures of a step that do not depend on the machine: `flops`, how many are `needed`, and `wasted`.

    That names the networks whose gradients no optimizer used, with the code that computed them.
    """
    contender = gan_contender(order.train_step, networks)
    run_period = partial(repeat_step, contender, batch, order.period)
    with GradientAudit(**contender.networks) as audit:
        run_period()
    run_period()  # the next one has none of the steps 1, 2, 4 and 8, at which some orders check D
    wasted = [
        f"{name} by `{event['place']['code']}`"
        for event in audit.data()["events"]
        for name, cell in event["cells"].items()
        if cell == "wasted"
    ]
    return {
        "needed": dot(order.needed or order.cost, forward_costs(*networks, *batch)),
        "flops": round(sum(count_flops(run_period)) / order.period),
        "wasted": ", ".join(wasted),
    }


def repeat_step(contender: Contender, batch: tuple[Tensor, Tensor], times: int) -> None:
    """Do a contender's step on one batch several times."""
    for _ in range(times):
        contender.step(*batch)


def compare_audit(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of the step of `gan_detach.py` without an audit, at the beginning of one, and later."""
    stream, networks = images_and_networks(options, device)
    contender, batch = gan_contender(gan_detach.train_step, networks), next(stream)
    contender.step(*batch)  # the first one is slow
    plain, first, later = names = "no audit", f"first {DETAILED_STEPS} steps of an audit", "later steps of an audit"
    seconds = {name: [] for name in names}
    for _ in tqdm(range(options.repeats), options.what, unit="turn", leave=False):
        seconds[plain].append(seconds_per_call(contender.step, [batch] * LATER_STEPS, device))
        with GradientAudit(**contender.networks):
            seconds[first].append(seconds_per_call(contender.step, [batch] * DETAILED_STEPS, device))
            seconds[later].append(seconds_per_call(contender.step, [batch] * LATER_STEPS, device))
    return timings(seconds, plain)


COMPARISONS = {
    "orders": (compare_orders, "update order", BASELINE),
    "audit": (compare_audit, "step", "no audit"),
}
COLUMNS = {"ms": lambda row: spread(row["ms"]), "speed": lambda row: spread(row["speed"])}
COUNTED = {
    "GFLOPs": lambda row: f"{row['flops'] / 1e9:.3f}",
    "wasted": lambda row: f"{1 - row['needed'] / row['flops']:.1%}" if row["needed"] else "?",
    "wasted gradients": lambda row: row["wasted"] or "-",
}


def report(result: dict) -> str:
    """Return the table: for each contender the medians over the turns, smallest and largest in brackets."""
    rows = result["rows"]
    _, head, baseline = COMPARISONS[result["options"]["what"]]
    columns = COLUMNS | (COUNTED if "flops" in rows[baseline] else {})
    lines = []
    for name, row in rows.items():
        if "why" in row:  # in the last column, which may be wide
            lines.append([name, *[""] * (len(columns) - 1), row["why"]])
        else:
            lines.append([name, *(text(row) for text in columns.values())])
    return table([head, *columns], lines)


def main(options: Options) -> None:
    """Measure, print the table, and write the figures to a file if asked for."""
    options = checked(options)
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    compare_them, _, baseline = COMPARISONS[options.what]
    result = write_result(options, device, {"rows": compare_them(options, device)})
    print(
        f"{conditions(result)}, batches of {options.batch_size}: a step, medians over {options.repeats} turns,\n"
        f'smallest and largest in brackets. Speed is in multiples of "{baseline}".\n\n{report(result)}'
    )


if __name__ == "__main__":
    launch(main, Options)
