"""Options of the training scripts, in groups as `--help` shows them, and what is asked of them before a run begins."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro

from common.data import DATASETS
from common.run.checkpoint import load_checkpoint, stored_options
from common.run.command_line import BadInput
from common.run.option_values import Count, Range, as_typed, flag, kept
from common.run.ranks import Ranks


@dataclass(frozen=True)
class DataOptions:
    """What to train on."""

    dataset: str = "mnist5k"
    """mnist5k, stacked-digits, mnist, fashion-mnist, cifar10, or a folder of images."""
    image_size: Annotated[int | None, Range(1, 4096)] = None
    """Pixels a side. None: the data set's own size, 64 for a folder."""


@dataclass(frozen=True)
class NetworkOptions:
    """What to train."""

    model: Literal["dcgan", "mlp"] = "dcgan"
    """Convolutional networks, or fully connected ones."""
    z_dim: Annotated[int, Range(1, 2**16)] = 64
    """Length of the noise vector that the generator starts from."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    batch_size: Annotated[int, Range(1, 2**20)] = 32
    """Images per step, all processes together."""
    steps: Count = 2400
    """Steps to train, each one update of every network."""
    lr: Annotated[float, Range(above=0)] = 2e-3
    """Adam's learning rate, for G."""
    lr_d: Annotated[float | None, Range(above=0)] = None
    """Adam's learning rate, for D. None: half of G's."""
    betas: Annotated[tuple[float, float], Range(0, below=1)] = (0.0, 0.999)
    """Adam's decay rates of the gradient's mean and of its square."""
    ema: Annotated[float, Range(0, below=1)] = 0.997
    """Decay per step of the averaged G that samples are from; 0: no average."""
    seed: Annotated[int, Range(0, 2**63 - 1)] = 0
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
    """What a run leaves, and where."""

    runs_dir: Path = Path(__file__).resolve().parents[2] / "runs"
    """Where the run's folder <script>/<date-time> is made."""
    log_every: Count = 50
    """Steps between two points of the curves."""
    sample_every: Count = 250
    """Steps between two sample grids."""
    checkpoint_every: Count = 500
    """Steps between two checkpoints; the last step has one anyway."""
    resume: Path | None = None
    """Folder of a run to go on with, by its own options; --steps may be raised."""
    audit: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print where every gradient of the first three steps goes."""

    def defaults(self) -> "RunOptions":
        """Return what stands for the options left out: those of the run to resume, or the class's own."""
        if self.resume is None:
            return type(self)()
        stored = stored_options(load_checkpoint(self.resume), self.resume, type(self))
        return replace(stored, resume=self.resume, audit=False)


# A dataclass has the fields of its last base first.
@dataclass(frozen=True)
class GanOptions(RunOptions, MachineOptions, TrainingOptions, NetworkOptions, DataOptions):
    """Options of the scripts with one generator and one discriminator."""


# What a run that is resumed may be given anew: more steps, another folder that holds its images, another machine to
# compute on. --audit is asked for each time.
GIVEN_ANEW = ("steps", "dataset", "device", "compile", "resume", "audit")


def check_resumable(script: str, options: RunOptions, checkpoint: dict) -> None:
    """Raise BadInput unless `options` go on with the checkpoint's run, which `script` made.

    They are those of the run but for more steps and what GIVEN_ANEW names. An option that the run was made without, as
    one that the script has got since, may have any value.
    """
    run = options.resume
    if not run.is_dir():
        raise BadInput(f"--resume {run}: name the run's folder, not a file")
    if checkpoint["script"] != script:
        raise BadInput(f"--resume {run}: made by {checkpoint['script']}.py, not by {script}.py; resume it with that")
    stored = stored_options(checkpoint, run, type(options))
    if not 0 < checkpoint["step"] <= stored.steps:
        raise BadInput(f"{run / 'checkpoint.pt'}: step {checkpoint['step']} of {stored.steps} makes no sense")
    if options.steps < stored.steps:
        raise BadInput(f"--steps {options.steps}: the run {run} has {stored.steps}, which can only be raised")
    given, made_with = kept(options), kept(stored)
    for name in checkpoint["options"]:
        by_name = name == "dataset" and (given[name] in DATASETS or made_with[name] in DATASETS)
        if given[name] != made_with[name] and (by_name or name not in GIVEN_ANEW):
            told = f"{flag(name)} {as_typed(getattr(options, name))}: the run {run} has"
            raise BadInput(f"{told} {as_typed(getattr(stored, name))}; leave the option out")


def check_alike(ranks: Ranks, **settings: object) -> None:
    """Raise BadInput unless all processes have the same settings."""
    for other in ranks.gather(settings):
        for name, value in settings.items():
            if other[name] != value:
                raise BadInput(f"{flag(name)}: {value} here and {other[name]} in another process; start all alike")


def pick_device(name: str | None) -> torch.device:
    """Return the device called `name`, by default CUDA where it is available; raises BadInput if it is not there.

    Of several processes that torchrun has started on a machine, each takes the CUDA device of its own number there.
    """
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > 1:
        if name != "cuda":
            raise BadInput(f"--device {name}: several processes cannot share it; --device cuda gives each its own")
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        found = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise BadInput(f"--device {name}: not on this machine, which has {', '.join(found)}") from error
    return torch.device(name)
