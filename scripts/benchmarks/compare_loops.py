"""How fast whole training loops are: `gan_detach.py` beside a loop as it is usually written.

Both train the same networks on the shipped digits and take turns within one run; times include the start. The usual
loop reads PIL images through a DataLoader, and calls `.item()` on each loss at every step. `gan_detach.py` runs in
full, with curves, samples and checkpoints.

    python scripts/benchmarks/compare_loops.py
    python scripts/benchmarks/compare_loops.py --model mlp --steps 2500
"""

import io
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose, Normalize, ToTensor
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.data import load_mnist5k
from common.models import MODELS
from common.run.command_line import launch
from common.run.option_values import Count, checked
from common.run.options import GanOptions, pick_device
from scripts import gan_detach
from scripts.benchmarks.compare_updates import textbook_detach
from scripts.benchmarks.harness import conditions, environment, seconds_in_turns, timing_table, timings

USUAL = "as usually written"


@dataclass(frozen=True)
class Options:
    """Options of the comparison."""

    model: Literal["conv", "mlp"] = "conv"
    """Convolutional networks, or fully connected ones."""
    batch_size: Annotated[int, Ge(1), Le(4000)] = GanOptions.batch_size
    """Images per step, of the 4,000 shipped digits."""
    steps: Count = 500
    """Steps of each loop."""
    repeats: Count = 3
    """Turns of each loop."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""


class Digits(Dataset):
    """The shipped digits with their labels, one PIL image at a time, as torchvision's MNIST returns its own.

    transform: applied to each PIL image.
    """

    def __init__(self, transform):
        self.images, self.labels = load_mnist5k()
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int):
        return self.transform(Image.fromarray(self.images[index, 0].numpy())), int(self.labels[index])


def usual_loop(options: Options, device: torch.device) -> None:
    """Train as most repositories do, with our networks and losses."""
    transform = Compose([ToTensor(), Normalize([0.5], [0.5])])
    loader = DataLoader(Digits(transform), options.batch_size, shuffle=True, drop_last=True)
    networks = MODELS[options.model]((1, 28, 28), GanOptions.z_dim)
    generator, discriminator = (network.to(device) for network in networks)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    for real, _ in islice(chain.from_iterable(repeat(loader)), options.steps):
        z = torch.randn(len(real), GanOptions.z_dim, device=device)
        losses = textbook_detach(generator, discriminator, optimizer_g, optimizer_d, real.to(device), z)
        for loss in losses.values():
            loss.item()


def whole_script(options: Options, device: torch.device) -> None:
    """Run `gan_detach.py` in full, into a temporary folder."""
    settings = {"model": options.model, "batch_size": options.batch_size, "steps": options.steps}
    with tempfile.TemporaryDirectory() as runs, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        gan_detach.main(GanOptions(**settings, device=str(device), runs_dir=Path(runs)))


def main(options: Options) -> None:
    """Measure and print the table."""
    options = checked(options)
    device = pick_device(options.device)
    loops = {USUAL: partial(usual_loop, options, device), "gan_detach.py": partial(whole_script, options, device)}
    bar = tqdm([[()]] * options.repeats, "whole loops", unit="turn", leave=False)
    seconds = seconds_in_turns(loops, bar, device, untimed=0)

    print(conditions(environment(device)) + "\n")
    print(timing_table("loop", timings(seconds, USUAL), options.steps * options.batch_size))


if __name__ == "__main__":
    launch(main, Options)
