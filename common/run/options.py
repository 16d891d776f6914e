"""Options of the training scripts, and their checks before a run starts."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from annotated_types import Ge, Gt, Le

from common.data import DATASETS
from common.errors import BadInput
from common.run.checkpoint import load_checkpoint, stored_options
from common.run.option_values import Count, Decay, Pixels, Seed, as_typed, flag, options_to_store
from common.run.ranks import Ranks


@dataclass(frozen=True)
class DataOptions:
    """What to train on."""

    dataset: str = "mnist5k"
    """mnist5k, stacked-digits, mnist, fashion-mnist, cifar10, or a folder of images."""
    image_size: Pixels | None = None
    """Pixels a side. None: the data set's own size, 64 for a folder."""


@dataclass(frozen=True)
class NetworkOptions:
    """What to train."""

    model: Literal["conv", "wide", "mlp"] = "conv"
    """Convolutional networks, the same with twice the channels, or fully connected ones."""
    z_dim: Annotated[int, Ge(1), Le(2**16)] = 8
    """Length of the noise vector that the generator starts from; more for data with more variety."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    batch_size: Annotated[int, Ge(1), Le(2**20)] = 48
    """Images per step: the global batch of all processes."""
    steps: Count = 1550
    """Steps to train, each one update of every network."""
    lr: Annotated[float, Gt(0)] = 2e-3
    """Adam's learning rate, for G. Colour pictures of 64 pixels need 5e-4, also for D."""
    lr_d: Annotated[float, Gt(0)] | None = None
    """Adam's learning rate, for D. None: a third of G's."""
    betas: tuple[Decay, Decay] = (0.0, 0.999)
    """Adam's decay rates of the gradient's mean and of its square."""
    ema: Decay = 0.995
    """Decay per step of the EMA of G, which draws the samples; 0: no average."""
    seed: Seed = 0
    """Fixes the initial weights, the noise and the order of the images."""


@dataclass(frozen=True)
class MachineOptions:
    """What to train with."""

    device: str | None = None
    """cpu, cuda, cuda:1, ... None: CUDA where it is available."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 computes in bfloat16 by autocast; weights and losses stay in float32."""
    compile: bool = False
    """Compile the networks: half a minute of waiting for faster steps."""


@dataclass(frozen=True)
class RunOptions:
    """What a run writes, and where."""

    runs_dir: Path = Path(__file__).resolve().parents[2] / "runs"
    """Where the run's folder <script>/<date-time> is made."""
    log_every: Count = 50
    """Steps between two points of the curves."""
    sample_every: Count = 250
    """Steps between two sample grids."""
    checkpoint_every: Count = 500
    """Steps between two checkpoints; the last step always has one."""
    resume: Path | None = None
    """Folder of a run to continue, with its own options; --steps may be raised."""
    audit: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print where every gradient of the first three steps goes, or of more, until every network has been trained."""

    def of_run(self) -> "RunOptions":
        """Return the options of the run to resume."""
        stored = stored_options(load_checkpoint(self.resume), self.resume, type(self))
        return replace(stored, resume=self.resume, audit=False)


# A dataclass has the fields of its last base first, and so has `--help`.
@dataclass(frozen=True)
class GanOptions(RunOptions, MachineOptions, TrainingOptions, NetworkOptions, DataOptions):
    """Options of the scripts with one generator and one discriminator."""


# What may change when a run is resumed: more steps, another path to its images, another device.
CHANGEABLE = ("steps", "dataset", "device", "compile", "resume", "audit")


def check_resumable(script: str, options: RunOptions, checkpoint: dict) -> None:
    """Raise BadInput unless `options` can continue the checkpoint's run, which `script` made.

    They must be those of the run, but for CHANGEABLE. Options that are newer than the run may have any value.
    """
    run = options.resume
    if not run.is_dir():
        raise BadInput(f"--resume {run}: name the run's folder, not a file")
    if checkpoint["script"] != script:
        raise BadInput(f"--resume {run}: made by {checkpoint['script']}.py, not by {script}.py; resume it with that")
    stored = stored_options(checkpoint, run, type(options))
    if options.steps < stored.steps:
        raise BadInput(f"--steps {options.steps}: the run {run} has {stored.steps}, which can only be raised")
    given, made_with = options_to_store(options), options_to_store(stored)
    for name in checkpoint["options"]:
        by_name = name == "dataset" and (given[name] in DATASETS or made_with[name] in DATASETS)
        if given[name] != made_with[name] and (by_name or name not in CHANGEABLE):
            before = as_typed(made_with[name])
            raise BadInput(f"{flag(name)} {as_typed(given[name])}: the run {run} has {before}; leave the option out")


def check_same_on_all_ranks(ranks: Ranks, **settings: object) -> None:
    """Raise BadInput unless all processes have the same settings."""
    for other in ranks.gather(settings):
        for name, value in settings.items():
            if other[name] != value:
                difference = f"{value} here and {other[name]} in another process"
                raise BadInput(f"{flag(name)}: {difference}; start all with the same options")


def pick_device(name: str | None) -> torch.device:
    """Return the device `name`, by default CUDA where it is available; raises BadInput if this machine lacks it."""
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ:  # under torchrun, each process has its own
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        found = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise BadInput(f"--device {name}: not on this machine, which has {', '.join(found)}") from error
    return torch.device(name)
