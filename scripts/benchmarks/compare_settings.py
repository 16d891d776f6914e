"""What the settings of a training step are worth: memory format, form of Adam, bfloat16, compilation.

Each row is the step of `gan_detach.py` on copies of the same networks, on the same data and noise. It differs from
"as shipped" in one setting. The rows take turns within one run; figures are medians over the turns, with quartiles in
brackets. As shipped, fused Adam raises the version counters of the weights (`common/optimizers.py`); "without version
counters" is plain `torch.optim.Adam(fused=True)`, so the difference is the cost of that check.

    python scripts/benchmarks/compare_settings.py
    python scripts/benchmarks/compare_settings.py --model mlp --repeats 50
"""

import copy
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
from annotated_types import Ge, Le
from torch import nn
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import batches
from common.images.load import load_images
from common.models import MODELS
from common.optimizers import fused_adam
from common.run.command_line import launch
from common.run.compiled import compile_in_place
from common.run.markdown import table
from common.run.option_values import Count, Pixels, check_numbers
from common.run.options import GanOptions, pick_device
from scripts import gan_detach
from scripts.benchmarks.step_cost import conditions, environment, quartiles, seconds_in_turns, speeds, spread

STEPS_PER_TURN = 5
SHIPPED = "as shipped"


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
    """Turns of each row, of five steps each."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


def contender(
    networks: list[nn.Module],
    memory_format: torch.memory_format = torch.preserve_format,
    compiled: bool = False,
    precision: torch.dtype | None = None,
    **adam: bool | None,
) -> Callable:
    """Return a step that trains the networks, (real, z) to None, with these settings.

    precision: of autocast; None for no autocast. adam: options of `torch.optim.Adam`; without any, `fused_adam`.
    """
    for network in networks:
        network.to(memory_format=memory_format)
    make = partial(torch.optim.Adam, **adam) if adam else fused_adam
    optimizers = [make(network.parameters(), lr=1e-3, betas=(0.5, 0.999)) for network in networks]
    if compiled:
        for network in networks:
            compile_in_place(network)

    def step(real, z):
        with torch.autocast(real.device.type, precision, enabled=precision is not None, cache_enabled=False):
            gan_detach.train_step(*networks, *optimizers, real, z)

    return step


def main(options: Options) -> None:
    """Measure and print the table."""
    check_numbers(options)
    with torch.device("meta"):  # refused before the digits are resized
        MODELS[options.model]((1, options.image_size, options.image_size), GanOptions.z_dim)
    device = pick_device(options.device)
    torch.manual_seed(0)
    images = load_images("mnist5k", options.image_size).to(device)
    networks = [network.to(device) for network in MODELS[options.model](tuple(images.shape[1:]), GanOptions.z_dim)]
    settings = {
        SHIPPED: {},
        "contiguous": {"memory_format": torch.contiguous_format},
        "without version counters": {"fused": True},
        "foreach Adam": {"foreach": True},
        "for-loop Adam": {"foreach": False},
        "--precision bf16": {"precision": torch.bfloat16},
        "--compile": {"compiled": True},
    }
    steps = {name: contender(copy.deepcopy(networks), **setting) for name, setting in settings.items()}
    reals = batches(images, options.batch_size, seed=0)
    stream = ((real, torch.randn(options.batch_size, GanOptions.z_dim, device=device)) for real in reals)
    batch = next(stream)
    for step in tqdm(steps.values(), "first steps and compilation", leave=False):
        step(*batch)
    turns = (list(islice(stream, 1 + STEPS_PER_TURN)) for _ in range(options.repeats))
    bar = tqdm(turns, "turns", options.repeats, unit="turn", leave=False)
    seconds = seconds_in_turns(steps, bar, device)

    print(conditions(environment(device)) + "\n")
    rows = []
    for name, taken in seconds.items():
        ratios = speeds(seconds[SHIPPED], taken)
        rows.append([name, f"{1e3 * median(taken):.2f}", spread(median(ratios), quartiles(ratios))])
    print(table(["setting", "ms per step", "speed, of as shipped"], rows))


if __name__ == "__main__":
    launch(main, Options)
