"""Options of the training scripts, in groups as `--help` shows them, and what is asked of them before a run begins."""

import math
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

import torch
import tyro

from common.checkpoint import load_checkpoint, stored_options
from common.command_line import BadInput

# Beyond these an option is a slip, or a checkpoint's attempt on the machine's memory.
LARGEST = {
    "seed": 2**63 - 1,  # what torch takes
    "image_size": 4096,
    "load_size": 4096,
    "channels": 1024,
    "batch_size": 2**20,
    "z_dim": 2**16,
    "width": 1024,
    "count": 10**7,
    "doublings": 8,
}


@dataclass(frozen=True)
class DataOptions:
    """What to train on."""

    dataset: str = "mnist5k"
    """mnist5k (shipped), mnist, fashion-mnist, cifar10, or a folder of images."""
    image_size: int | None = None
    """Pixels a side. None: the data set's own size, 64 for a folder."""


@dataclass(frozen=True)
class NetworkOptions:
    """What to train."""

    model: Literal["dcgan", "mlp"] = "dcgan"
    """Convolutional networks, or fully connected ones."""
    z_dim: int = 64
    """Length of the noise vector that the generator starts from."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    batch_size: int = 32
    """Images per step, all processes together."""
    steps: int = 2400
    """Steps to train, each one update of every network."""
    lr: float = 2e-3
    """Adam's learning rate, for G."""
    lr_d: float | None = None
    """Adam's learning rate, for D. None: half of G's."""
    betas: tuple[float, float] = (0.0, 0.999)
    """Adam's decay rates of the gradient's mean and of its square."""
    ema: float = 0.997
    """Decay per step of the averaged G that samples are from; 0: no average."""
    seed: int = 0
    """Fixes the initial weights, the noise and the order of the images."""


@dataclass(frozen=True)
class MachineOptions:
    """What to train with."""

    device: str | None = None
    """cpu, cuda, cuda:1, ... None: CUDA where it is available."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 computes in bfloat16 by autocast; weights and losses stay in float32."""
    compile: tyro.conf.FlagCreatePairsOff[bool] = False
    """Compile the networks: half a minute of waiting for faster steps."""


@dataclass(frozen=True)
class RunOptions:
    """What a run leaves, and where."""

    runs_dir: Path = Path(__file__).resolve().parents[1] / "runs"
    """Where the run's folder <script>/<date-time> is made."""
    log_every: int = 50
    """Steps between two points of the curves."""
    sample_every: int = 250
    """Steps between two sample grids."""
    checkpoint_every: int = 500
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


def check_numbers(options: object) -> None:
    """Raise BadInput for numbers in the dataclass `options` that make no sense.

    All must be finite and positive, betas and ema below 1, and whole numbers at most what LARGEST says; seed and
    identity_weight may be 0.
    """
    for field in fields(options):
        value = getattr(options, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            flag = f"--{field.name.replace('_', '-')} {number}"
            if isinstance(number, int) and number > (largest := LARGEST.get(field.name, 10**9)):
                raise BadInput(f"{flag}: must be at most {largest}")
            if not math.isfinite(number):
                raise BadInput(f"{flag}: must be a finite number")
            if field.name in ("betas", "ema"):
                if not 0 <= number < 1:
                    raise BadInput(f"{flag}: must be at least 0 and below 1")
            elif field.name in ("seed", "identity_weight"):
                if number < 0:
                    raise BadInput(f"{flag}: must be 0 or more")
            elif number <= 0:
                raise BadInput(f"{flag}: must be more than 0")


def check_resumable(script: str, options: RunOptions, checkpoint: dict) -> None:
    """Raise BadInput unless `options` are those of the checkpoint's run, which `script` made, or more of its steps."""
    run = options.resume
    if not run.is_dir():
        raise BadInput(f"--resume {run}: name the run's folder, not a file")
    if checkpoint["script"] != script:
        raise BadInput(f"--resume {run}: made by {checkpoint['script']}.py, not by {script}.py; resume it with that")
    stored = stored_options(checkpoint, run, type(options))
    check_numbers(stored)
    if not 0 < checkpoint["step"] <= stored.steps:
        raise BadInput(f"{run / 'checkpoint.pt'}: step {checkpoint['step']} of {stored.steps} makes no sense")
    if options.steps < stored.steps:
        raise BadInput(f"--steps {options.steps}: the run {run} has {stored.steps}, which can only be raised")
    for field in fields(options):
        given, made_with = getattr(options, field.name), getattr(stored, field.name)
        if given != made_with and field.name not in ("steps", "resume", "audit"):
            flag = f"--{field.name.replace('_', '-')}"
            raise BadInput(f"{flag} {as_typed(given)}: the run {run} has {as_typed(made_with)}; leave the option out")


def as_typed(value: object) -> str:
    """Return an option's value as one writes it on the command line."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


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
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        found = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise BadInput(f"--device {name}: not on this machine, which has {', '.join(found)}") from error
    return torch.device(name)
