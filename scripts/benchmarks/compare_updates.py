"""What a step costs: time, arithmetic and memory. `--what` names a comparison.

    orders      the update orders; "textbook" is an order as it is usually written, with plain `backward()`
    ratio       what some of them cost, counted, over the ratio of D's cost to G's, with `conv` in several widths

All contenders of a comparison train copies of the same networks on the same data and noise, in turns within one run.

    python scripts/benchmarks/compare_updates.py
    python scripts/benchmarks/compare_updates.py --what ratio
    python scripts/benchmarks/compare_updates.py --networks my_gan.py:make_networks --dataset my_images

Speed is in multiples of "detach, textbook". "ms a G step" is the time from one step of G to the next, for which
`wgan_gp` steps D five times. FLOPs are those of all matrix products and convolutions of a step (`step_cost.py`);
redundant are those that the cheapest order with the same update does without. Memory is the peak of live tensors, with
gradients, without weights and optimizers' state.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import batches, load_images
from common.errors import BadInput, as_bad_input, counted
from common.launch import pick_device
from common.models import conv
from common.optimizers import fused_adam
from common.options import BatchSize, Count, GanOptions, NetworkOptions, Range
from scripts.benchmarks import harness
from scripts.benchmarks.step_cost import StepCost
from scripts.benchmarks.update_orders import BASELINE, G_FIRST, ONE_PASS, ORDERS, Order
from scripts.tools.finished_run import make_own_networks, with_advice
from scripts.tools.output import check_new_file, launch, table

STEPS_PER_TURN = 5
RATIO_ORDERS = ["retain_graph", ONE_PASS, G_FIRST, "generator_first", "simultaneous", "one_stage"]
WIDTHS = [(48, 16), (32, 16), (24, 16), (16, 16), (16, 24), (16, 32), (16, 40), (16, 48)]  # of G and of D
Batch = tuple[Tensor, Tensor]  # real, z


@dataclass(frozen=True)
class StepOptions(NetworkOptions):
    """What trains in a comparison of steps, and how often."""

    networks: str | None = None
    """FILE:FUNCTION that makes networks of your own, (image_shape, z_dim) -> (generator, discriminator). FILE is
    executed. None takes those of --model."""
    batch_size: BatchSize = GanOptions.batch_size  # Images per step.
    device: str | None = None  # cpu, cuda, cuda:1, ... None takes CUDA where it is available.
    repeats: Count = 20  # Turns of each contender; 3 are a quick look.


@dataclass(frozen=True)
class Options(StepOptions):
    """Options of the comparison."""

    what: Literal["orders", "ratio"] = "orders"  # Update orders; or some of them over the ratio of D's cost to G's.
    repeats: Annotated[int, Range(0, 10**9)] = 20
    """Turns of each contender; 3 are a quick look, 0 only counts, as `--what ratio` always does."""
    output: Path | None = None  # New .json file for the figures.


def gan_contender(train_step: Callable, networks: list[nn.Module]) -> tuple[Callable, dict]:
    """Return a step on copies of the networks, given (real, z); and the copies by name."""
    networks = copy.deepcopy(networks)
    optimizers = [fused_adam(network.parameters(), 1e-3, (0.5, 0.999)) for network in networks]
    step = partial(train_step, *networks, *optimizers)
    return step, dict(zip("GD", networks, strict=True))


def images_and_networks(options: StepOptions, device: torch.device) -> tuple[Iterator[Batch], list[nn.Module]]:
    """Return a stream of batches, (real, z), and new networks G and D."""
    images = load_images(options.dataset, options.image_size).to(device)
    torch.manual_seed(0)
    if options.networks and options.model != StepOptions.model:
        raise BadInput(f"--model={options.model}: has no effect beside --networks; leave it out")
    own = make_own_networks(options.networks, tuple(images.shape[1:]), options.z_dim) if options.networks else None
    networks = own or options.make_networks(images.shape[1:])
    if not all(isinstance(network, nn.Module) for network in networks):
        raise BadInput(f"--networks {options.networks}: must return two nn.Modules, generator and discriminator")
    networks = [network.to(device) for network in networks]
    reals = batches(images, options.batch_size, seed=0)
    stream = ((real, torch.randn(len(real), options.z_dim, device=device)) for real in reals)
    if options.networks:
        real, z = next(stream)
        subject = f"--networks {options.networks}: generator(z) and discriminator(images) cannot be trained"
        with as_bad_input(partial(with_advice, subject, networks[0], z), Exception):
            gan_contender(ORDERS[BASELINE].train_step, networks)[0](real, z)
    return stream, networks


def compare_orders(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of the update orders; `why` has the reason of one that cannot train the networks."""
    stream, networks = images_and_networks(options, device)
    batch = next(stream)
    counts, refusals = {}, {}
    for name, order in ORDERS.items():
        try:
            counts[name] = count(order, networks, batch)
        except Exception as error:  # networks of one's own may raise anything
            refusals[name] = {"why": (str(error) or type(error).__name__).splitlines()[0]}
    if BASELINE in refusals:
        raise BadInput(f"--networks {options.networks}: a step cannot be counted: {refusals[BASELINE]['why']}")
    for name, figures in counts.items():
        same = (counts[other]["flops"] for other in counts if ORDERS[other].update == ORDERS[name].update)
        figures["needed"] = None if ORDERS[name].is_exact or figures["uncounted"] else min(same)
    if not options.repeats:
        return counts | refusals
    steps = {name: gan_contender(ORDERS[name].train_step, networks)[0] for name in counts}
    turns = (list(islice(stream, 1 + STEPS_PER_TURN)) for _ in range(1 + options.repeats))
    bar = tqdm(turns, options.what, 1 + options.repeats, unit="turn", leave=False)
    ms = harness.ms_in_turns(steps, bar, device)
    return {name: counts[name] | {"ms": ms[name][1:]} for name in counts} | refusals  # the first turn is slow


def count(order: Order, networks: list[nn.Module], batch: Batch) -> dict:
    """Return the figures of a step that no clock measures: `flops`, and `memory`, its peak in bytes."""
    step, trained = gan_contender(order.train_step, networks)
    for _ in range(2 * order.period):  # the next one is none of those at which some orders check D
        step(*batch)
    gradients = (p.grad for network in trained.values() for p in network.parameters())
    with StepCost(gradient for gradient in gradients if gradient is not None) as cost:
        for _ in range(order.period):
            step(*batch)
    return {"flops": round(cost.flops / order.period), "memory": cost.peak, "uncounted": sorted(cost.uncounted)}


def compare_ratios(options: Options, device: torch.device) -> dict[str, dict]:
    """Return the rows of RATIO_ORDERS: FLOPs and memory in multiples of G_FIRST's, by the ratio of D's FLOPs to G's."""
    if options.networks or options.model != "conv":
        raise BadInput("--what=ratio: is of conv in several widths; leave out --networks and --model")
    real, z = batch = next(images_and_networks(options, device)[0])
    rows = {name: {"flops": {}, "memory": {}} for name in RATIO_ORDERS}
    for widths in tqdm(WIDTHS, options.what, leave=False):
        pairs = (conv(tuple(real.shape[1:]), options.z_dim, width=width) for width in widths)
        generator, discriminator = networks = [pair[number].to(device) for number, pair in enumerate(pairs)]
        with StepCost() as cost_g:
            generator(z)
        with StepCost() as cost_d:
            discriminator(real)
        counts = {name: count(ORDERS[name], networks, batch) for name in rows}
        for name, row in rows.items():
            for figure, values in row.items():
                values[f"{cost_d.flops / cost_g.flops:.2f}"] = counts[name][figure] / counts[G_FIRST][figure]
    return rows


FOOTNOTE = """\
Redundant is "-" where what is needed cannot be counted: for an exact penalty, whose double backward PyTorch computes
with bigger filters than it takes, for networks without a matrix product or a convolution, and where operations have no
formula."""


def cells_of(name: str, row: dict, baseline: dict) -> dict[str, str]:
    """Return the cells of an update order by their column, with "-" for what cannot be counted."""
    cells = {}
    if "ms" in row:
        speeds = [reference / own for reference, own in zip(baseline["ms"], row["ms"], strict=True)]
        times = {"ms": row["ms"], "speed": speeds, "ms a G step": [ms * ORDERS[name].critic_steps for ms in row["ms"]]}
        cells = {column: harness.spread(values) for column, values in times.items()}
    cells["GFLOPs"] = f"{row['flops'] / 1e9:{'.3f' if row['flops'] > 1e8 else '.3g'}}"
    cells["redundant"] = f"{1 - row['needed'] / row['flops']:.1%}" if row["needed"] else "-"
    return cells | {"MiB": f"{row['memory'] / 2**20:.1f}"}


def report(result: dict) -> str:
    """Return the table, medians over the turns with smallest and largest in brackets; below it, who is not in it."""
    rows, reasons = dict(result["rows"]), {}
    for name in [name for name, row in rows.items() if "why" in row]:
        reasons.setdefault(rows.pop(name)["why"], []).append(name)
    if result["options"]["what"] == "ratio":
        pairs = {name: zip(row["flops"].items(), row["memory"].values(), strict=True) for name, row in rows.items()}
        cells = {name: {ratio: f"{flops:.2f}, {memory:.2f}" for (ratio, flops), memory in pairs[name]} for name in rows}
    else:
        cells = {name: cells_of(name, row, rows[BASELINE]) for name, row in rows.items()}
    columns = [column for column in next(iter(cells.values())) if any(row[column] != "-" for row in cells.values())]
    texts = [table(["update order", *columns], [[name, *(row[c] for c in columns)] for name, row in cells.items()])]
    texts += [FOOTNOTE] if any(row.get("redundant") == "-" for row in cells.values()) else []
    uncounted = sorted({name for row in rows.values() for name in row.get("uncounted", ())})
    texts += [f"GFLOPs are too few, as there is no formula for {', '.join(uncounted)}."] if uncounted else []
    texts += [f"No row for {'; '.join(names)}: {why}" for why, names in reasons.items()]
    return "\n\n".join(texts)


def main(options: Options) -> None:
    """Measure, print the table, and write the figures to a file if asked for."""
    if options.output:
        check_new_file(options.output, ".json")
    device = pick_device(options.device)
    if options.what == "ratio":
        rows, caption = compare_ratios(options, device), f'FLOPs, then peak memory, in multiples of "{G_FIRST}"'
    else:
        rows, caption = compare_orders(options, device), "counted, not timed"
        if options.repeats:
            caption = f"medians over {counted(options.repeats, 'turn')}, smallest and largest in brackets"
    harness.present(options, device, {"rows": rows}, f"batches of {options.batch_size}: a step,\n{caption}", report)


if __name__ == "__main__":
    launch(main, Options)
