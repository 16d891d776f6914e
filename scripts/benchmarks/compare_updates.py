"""What a step costs: time, arithmetic, and gradients that no optimizer uses. `--what` names a comparison.

    orders      the update orders; "textbook" is an order as it is usually written, with plain `backward()`
    audit       the step of `gan_detach.py` under `GradientAudit`, which watches its first steps in detail

All contenders of a comparison train copies of the same networks on the same data and noise; they take turns within one
run. Figures are medians over the turns, with the smallest and the largest in brackets.

    python scripts/benchmarks/compare_updates.py
    python scripts/benchmarks/compare_updates.py --what audit --model mlp
    python scripts/benchmarks/compare_updates.py --networks my_gan.py:make_networks --dataset my_images

"ms a G step" is the time from one step of G to the next, for which `wgan_gp` steps D five times. FLOPs are those of all
matrix products and convolutions of a step (`step_cost.py`). "Wasted" is the share that the cheapest order with the same
update does without.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import batches, load_images
from common.errors import BadInput, refusing
from common.losses import discriminator_loss, generator_loss
from common.models import MODELS
from common.optimizers import fused_adam
from common.options import BatchSize, Count, GanOptions, launch
from common.run import pick_device
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
    clock,
    conditions,
    seconds_in_turns,
    seconds_per_call,
    spread,
    timings,
    write_result,
)
from scripts.benchmarks.step_cost import count_flops
from scripts.tools.finished_run import make_own_networks
from scripts.tools.output import check_new_file, table

STEPS_PER_TURN = 5
DETAILED_STEPS = 6  # of two backward passes, which an audit watches in detail
LATER_STEPS = 20


@dataclass(frozen=True)
class Options(ComparisonOptions):
    """Options of the comparison."""

    what: Literal["orders", "audit"] = "orders"
    """The contenders: update orders, or a step under an audit."""
    batch_size: BatchSize = GanOptions.batch_size
    """Images per step."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16: forward passes in bfloat16; weights and losses in float32."""
    repeats: Count = 20
    """Turns of each contender; 3 are a quick look."""
    output: Path | None = None
    """New .json file for the figures."""


class Contender(NamedTuple):
    """A step, called with a batch (real, z), and the networks that it trains."""

    step: Callable[..., object]
    networks: dict[str, nn.Module]


def gan_contender(train_step: Callable, networks: list[nn.Module], precision: str = "fp32") -> Contender:
    """Return a contender that trains copies of the networks G and D with `train_step`, under autocast if `bf16`."""
    networks = copy.deepcopy(networks)
    optimizers = [fused_adam(network.parameters(), 1e-3, (0.5, 0.999)) for network in networks]

    def step(real: Tensor, z: Tensor) -> None:
        with torch.autocast(real.device.type, torch.bfloat16, precision == "bf16", cache_enabled=False):
            train_step(*networks, *optimizers, real, z)

    return Contender(step, dict(zip("GD", networks, strict=True)))


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
    """An update order: its step, and a name for the update that it makes, which it may share with other orders.

    period: steps after which the order repeats itself. critic_steps: steps of D from one step of G to the next.
    is_exact: whether it differentiates a penalty by a double backward.
    """

    train_step: Callable
    update: str
    period: int = 1
    critic_steps: int = 1
    is_exact: bool = False


def in_turn(*train_steps: Callable) -> Callable:
    """Return a step that is each of `train_steps` in turn."""
    turns = cycle(train_steps)
    return lambda *given: next(turns)(*given)


CRITIC, BOTH = (partial(gan_wgan_gp.train_step, train_generator=trained) for trained in (False, True))
PLAIN_CRITIC, PLAIN_BOTH = (partial(step, penalty_weight=0.0) for step in (CRITIC, BOTH))
PLAIN_R3 = partial(gan_r3.train_step, penalty_weight=0.0)
LAZY_R3 = partial(gan_r3.train_step, penalty_weight=5.0)

BASELINE = "detach, textbook"
ORDERS = {
    "retain_graph": Order(gan_retain_graph.train_step, "D first"),
    BASELINE: Order(textbook_detach, "D first"),
    "detach": Order(gan_detach.train_step, "D first"),
    "generator_first": Order(gan_generator_first.train_step, "simultaneous"),
    "resample": Order(gan_resample.train_step, "resample"),
    "simultaneous": Order(gan_simultaneous.train_step, "simultaneous"),
    "one_stage": Order(gan_one_stage.train_step, "simultaneous"),
    "wgan_gp, no penalty": Order(in_turn(*[PLAIN_CRITIC] * 4, PLAIN_BOTH), "critic", 5, 5),
    "wgan_gp": Order(in_turn(*[CRITIC] * 4, BOTH), "wgan_gp", 5, 5, is_exact=True),
    "r3, no penalty": Order(PLAIN_R3, "relativistic"),
    "r3, every 5th": Order(in_turn(*[PLAIN_R3] * 4, LAZY_R3), "r3, every 5th", period=5, is_exact=True),
    "r3": Order(gan_r3.train_step, "r3", is_exact=True),
}


def images_and_networks(
    options: Options, device: torch.device
) -> tuple[Iterator[tuple[Tensor, Tensor]], list[nn.Module]]:
    """Return a stream of batches, (real, z), and new networks G and D."""
    images = load_images(options.dataset, options.image_size).to(device)
    torch.manual_seed(0)
    make_networks = partial(make_own_networks, options.networks) if options.networks else MODELS[options.model]
    with refusing("--image-size"):
        networks = make_networks(tuple(images.shape[1:]), options.z_dim)
    if not all(isinstance(network, nn.Module) for network in networks):
        raise BadInput(f"--networks {options.networks}: must return two nn.Modules, generator and discriminator")
    networks = [network.to(device) for network in networks]
    reals = batches(images, options.batch_size, seed=0)
    stream = ((real, torch.randn(len(real), options.z_dim, device=device)) for real in reals)
    if options.networks:
        with refusing(f"--networks {options.networks}: generator(z) and discriminator(images) cannot be trained"):
            gan_contender(textbook_detach, networks, options.precision).step(*next(stream))
    return stream, networks


def compare_orders(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of the update orders; `why` has the reason of one that cannot train the networks."""
    stream, networks = images_and_networks(options, device)
    batch = next(stream)
    counts, refusals = {}, {}
    for name, order in ORDERS.items():
        try:
            counts[name] = count(order, networks, batch, options.precision)
        except Exception as error:  # networks of one's own may raise anything
            if not options.networks:
                raise
            refusals[name] = {"why": (str(error) or type(error).__name__).splitlines()[0]}
    for name, figures in counts.items():
        same = (counts[other]["flops"] for other in counts if ORDERS[other].update == ORDERS[name].update)
        figures["needed"] = None if ORDERS[name].is_exact else min(same)
    contenders = {name: gan_contender(ORDERS[name].train_step, networks, options.precision) for name in counts}
    start = clock(device)
    for contender in tqdm(contenders.values(), "first steps", leave=False):
        repeat_step(contender, batch, 1 + STEPS_PER_TURN)  # the first ones are slow
    expected = tqdm.format_interval(options.repeats * (clock(device) - start))
    print(f"{options.repeats} turns take {expected}; --repeats 3 is a quick look", file=sys.stderr)
    turns = (list(islice(stream, 1 + STEPS_PER_TURN)) for _ in range(options.repeats))
    bar = tqdm(turns, options.what, options.repeats, unit="turn", leave=False)
    steps = {name: contender.step for name, contender in contenders.items()}
    rows = timings(seconds_in_turns(steps, bar, device), BASELINE)
    return {name: refusals.get(name) or counts[name] | rows[name] for name in ORDERS}


def count(order: Order, networks: list[nn.Module], batch: tuple[Tensor, Tensor], precision: str = "fp32") -> dict:
    """Return the figures of a step that do not depend on the machine: `flops` and `wasted`.

    The latter names the networks whose gradients no optimizer used, with the code that computed them.
    """
    contender = gan_contender(order.train_step, networks, precision)
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
    return {"flops": round(sum(count_flops(run_period)) / order.period), "wasted": ", ".join(wasted)}


def repeat_step(contender: Contender, batch: tuple[Tensor, Tensor], times: int) -> None:
    """Do a contender's step on one batch several times."""
    for _ in range(times):
        contender.step(*batch)


def compare_audit(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of the step of `gan_detach.py` without an audit, at the beginning of one, and later."""
    stream, networks = images_and_networks(options, device)
    contender, batch = gan_contender(gan_detach.train_step, networks, options.precision), next(stream)
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
COLUMNS = {"ms": lambda _, row: spread(row["ms"]), "speed": lambda _, row: spread(row["speed"])}
ORDER_COLUMNS = {
    "ms a G step": lambda name, row: spread([ms * ORDERS[name].critic_steps for ms in row["ms"]]),
    "GFLOPs": lambda _, row: f"{row['flops'] / 1e9:.3f}",
    "wasted": lambda _, row: f"{1 - row['needed'] / row['flops']:.1%}" if row["needed"] else "-",
    "wasted gradients": lambda _, row: row["wasted"] or "-",
}
FOOTNOTE = """\
Wasted is "-" where what is needed cannot be counted: for an exact penalty, whose double backward PyTorch computes with
bigger filters than it takes, and for networks without a matrix product or a convolution."""


def report(result: dict) -> str:
    """Return the table: for each contender the medians over the turns, smallest and largest in brackets."""
    what, lines = result["options"]["what"], []
    columns = COLUMNS | (ORDER_COLUMNS if what == "orders" else {})
    for name, row in result["rows"].items():
        if "why" in row:  # in the last column, which may be wide
            lines.append([name, *[""] * (len(columns) - 1), row["why"]])
        else:
            lines.append([name, *(text(name, row) for text in columns.values())])
    return table([COMPARISONS[what][1], *columns], lines) + (f"\n\n{FOOTNOTE}" if what == "orders" else "")


def main(options: Options) -> None:
    """Measure, print the table, and write the figures to a file if asked for."""
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    compare_them, _, baseline = COMPARISONS[options.what]
    result = write_result(options, device, {"rows": compare_them(options, device)})
    print(
        f"{conditions(result)}, batches of {options.batch_size}, {options.precision}: "
        f"a step, medians over {options.repeats} turns,\n"
        f'smallest and largest in brackets. Speed is in multiples of "{baseline}".\n\n{report(result)}'
    )


if __name__ == "__main__":
    launch(main, Options)
