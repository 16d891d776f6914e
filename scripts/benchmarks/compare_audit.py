"""What the audit costs: a training step under `GradientAudit`, beside the same step without it.

The step is that of `gan_detach.py`. The first six steps under an audit are watched in detail (forward passes, terms of
the losses, lines of operations), all later ones without. The three kinds of steps take turns within one run; figures
are medians over the turns, with quartiles in brackets.

    python scripts/benchmarks/compare_audit.py
    python scripts/benchmarks/compare_audit.py --repeats 50 --batch-size 64
"""

import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
from annotated_types import Ge, Le
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.models import MODELS
from common.optimizers import fused_adam
from common.run.command_line import launch
from common.run.markdown import table
from common.run.option_values import Count, Pixels, check_numbers
from common.run.options import GanOptions, pick_device
from gradient_audit import DETAILED, GradientAudit
from scripts import gan_detach
from scripts.benchmarks.step_cost import conditions, environment, quartiles, spread

FIRST = DETAILED // 2  # steps of two backward passes
STEPS = 20


@dataclass(frozen=True)
class Options:
    """Options of the comparison."""

    image_size: Pixels = 28
    """Pixels a side of the images."""
    batch_size: Annotated[int, Ge(1), Le(2**20)] = GanOptions.batch_size
    """Images per step."""
    repeats: Count = 20
    """Turns of each row."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def seconds(step: Callable, count: int, device: torch.device) -> float:
    """Return the seconds that a step takes, from `count` of them."""
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    synchronize()
    return (time.perf_counter() - start) / count


def measure(model: str, options: Options, device: torch.device) -> list[list[float]]:
    """Return the seconds of a step in each turn: without an audit, at its beginning, and later."""
    torch.manual_seed(0)
    shape = (1, options.image_size, options.image_size)
    networks = [network.to(device) for network in MODELS[model](shape, GanOptions.z_dim)]
    optimizers = [fused_adam(network.parameters(), lr=1e-4, betas=(0.5, 0.999)) for network in networks]
    real = torch.rand(options.batch_size, *shape, device=device) * 2 - 1
    z = torch.randn(options.batch_size, GanOptions.z_dim, device=device)

    def step():
        gan_detach.train_step(*networks, *optimizers, real, z)

    seconds(step, 3, device)  # the first ones are slow
    taken = []
    for _ in tqdm(range(options.repeats), model, unit="turn", leave=False):
        plain = seconds(step, STEPS, device)
        with GradientAudit(generator=networks[0], discriminator=networks[1]):
            taken.append([plain, seconds(step, FIRST, device), seconds(step, STEPS, device)])
    return [list(column) for column in zip(*taken, strict=True)]


def main(options: Options) -> None:
    """Measure and print the table."""
    check_numbers(options)
    with torch.device("meta"):  # refused before anything is measured
        for make in MODELS.values():
            make((1, options.image_size, options.image_size), GanOptions.z_dim)
    device = pick_device(options.device)
    rows = []
    for model in MODELS:
        plain, *audited = measure(model, options, device)
        rows.append([model, f"{1e3 * median(plain):.2f}"])
        for taken in audited:
            ratios = [own / alone for own, alone in zip(taken, plain, strict=True)]
            rows[-1].append(spread(median(ratios), quartiles(ratios)))
    print(conditions(environment(device)) + "\n")
    print(table(["networks", "ms per step", f"under audit, first {FIRST} steps", "later steps"], rows))


if __name__ == "__main__":
    launch(main, Options)
