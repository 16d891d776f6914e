"""How fast whole training loops are: `gan_detach.py` beside a loop as it is usually written.

Both train the same networks on the same images and take turns within one run; times include the start. The usual
loop reads PIL images through a DataLoader, and calls `.item()` on each loss at every step. `gan_detach.py` runs in
full, with curves, samples and checkpoints.

    python scripts/benchmarks/compare_loops.py
    python scripts/benchmarks/compare_loops.py --model mlp --steps 2500
"""

import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose, Normalize, ToTensor
from torchvision.transforms.v2.functional import to_pil_image
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` and `scripts` importable from any folder

from common.errors import BadInput, blame
from common.images.load import load_images
from common.models import MODELS
from common.run.command_line import launch
from common.run.option_values import Count, checked
from common.run.options import GanOptions, pick_device
from scripts import gan_detach
from scripts.benchmarks.compare_updates import textbook_detach
from scripts.benchmarks.harness import (
    ComparisonOptions,
    conditions,
    environment,
    networks_in_words,
    own_networks,
    seconds_in_turns,
    timing_table,
    timings,
)

USUAL = "as usually written"


@dataclass(frozen=True)
class Options(ComparisonOptions):
    """Options of the comparison."""

    batch_size: Annotated[int, Ge(1), Le(2**20)] = GanOptions.batch_size
    """Images per step."""
    steps: Count = 500
    """Steps of each loop."""
    repeats: Count = 3
    """Turns of each loop."""


class PilImages(Dataset):
    """Images, uint8 (N, C, H, W), one PIL image at a time, as torchvision's data sets return theirs."""

    def __init__(self, images: Tensor, transform: Callable):
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int):
        return self.transform(to_pil_image(self.images[index]))


def usual_loop(options: Options, device: torch.device) -> None:
    """Train as most repositories do, with our networks and losses."""
    images = load_images(options.dataset, options.image_size)
    if not isinstance(images, Tensor) or len(images) < options.batch_size:
        message = f"holds {len(images)} images; name one that fits into memory, and has a batch"
        raise BadInput(f"--dataset {options.dataset}: {message}")
    transform = Compose([ToTensor(), Normalize([0.5], [0.5])])
    loader = DataLoader(PilImages(images, transform), options.batch_size, shuffle=True, drop_last=True)
    with blame("--image-size"):
        networks = MODELS[options.model](tuple(images.shape[1:]), options.z_dim)
    generator, discriminator = (network.to(device) for network in networks)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    for real in islice(chain.from_iterable(repeat(loader)), options.steps):
        z = torch.randn(len(real), options.z_dim, device=device)
        losses = textbook_detach(generator, discriminator, optimizer_g, optimizer_d, real.to(device), z)
        for loss in losses.values():
            loss.item()


def whole_script(options: Options, device: torch.device) -> None:
    """Run `gan_detach.py` in full, into a temporary folder."""
    names = ("dataset", "image_size", "model", "z_dim", "batch_size", "steps")
    settings = {name: getattr(options, name) for name in names}
    with tempfile.TemporaryDirectory() as runs, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        gan_detach.main(GanOptions(**settings, device=str(device), runs_dir=Path(runs)))


def main(options: Options) -> None:
    """Measure and print the table."""
    options = checked(options)
    device = pick_device(options.device)
    loops = {USUAL: partial(usual_loop, options, device), "gan_detach.py": partial(whole_script, options, device)}
    bar = tqdm([[()]] * options.repeats, "whole loops", unit="turn", leave=False)
    with own_networks(options):
        seconds = seconds_in_turns(loops, bar, device, untimed=0)

    print(f"{conditions(environment(device))}\n\n{networks_in_words(asdict(options))}:\n")
    print(timing_table("loop", timings(seconds, USUAL), options.steps * options.batch_size))


if __name__ == "__main__":
    launch(main, Options)
