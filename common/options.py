"""Options: dataclasses whose annotations hold types and ranges, and the command line that fills them."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import torch.distributed as dist
import tyro

from common.checkpoint import load_checkpoint
from common.data import DATASETS
from common.errors import BadInput, Stopped


class Range(NamedTuple):
    """The range of a number, both ends included, as in `Annotated[int, Range(1, 100)]`."""

    low: float
    high: float


Count = Annotated[int, Range(1, 10**9)]
Pixels = Annotated[int, Range(1, 4096)]
BatchSize = Annotated[int, Range(1, 2**20)]
Seed = Annotated[int, Range(0, 2**63 - 1)]
Rate = Annotated[float, Range(1e-12, 1e6)]
Weight = Annotated[float, Range(0, 1e9)]
Decay = Annotated[float, Range(0, 0.999999)]


@dataclass(frozen=True)
class Options:
    """What all options derive from; tyro checks the types of their values, and this the ranges."""

    def __post_init__(self):
        """Raise BadInput, naming the option, for a number that is not in the range of its annotation."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            ranges = [mark for part in (kind, *get_args(kind)) for mark in get_args(part) if isinstance(mark, Range)]
            for limits in ranges:
                for number in value if isinstance(value, tuple) else [value]:
                    if number is not None and not limits.low <= number <= limits.high:  # nan is in no range
                        raise BadInput(f"{typed(name, value)}: must be from {limits.low:g} to {limits.high:g}")


@dataclass(frozen=True)
class NetworkOptions(Options):
    """What to train on, and what."""

    dataset: str = "mnist5k"  # mnist5k, stacked-digits, mnist, fashion-mnist, cifar10, or a folder of images.
    image_size: Pixels | None = None  # Pixels a side, of the middle square. None: the data set's own, 64 for a folder.
    model: Literal["conv", "wide", "mlp"] = "conv"  # Convolutional; the same with twice the channels; fully connected.
    z_dim: Annotated[int, Range(1, 2**16)] = 64  # Length of the noise vector that the generator starts from.


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """How to train."""

    lr: Rate = 3e-3  # Adam's learning rate, up to half of the steps; then it falls linearly to zero.
    lr_d: Rate | None = None  # The same, for D. None: as for G.
    betas: tuple[Decay, Decay] = (0.0, 0.9)  # Adam's decay rates of the gradient's mean and of its square.
    ema: Decay = 0.995  # Decay per step of the EMA of G, which draws the samples; 0: no average.


@dataclass(frozen=True)
class RunOptions(Options):
    """What a `Run` takes from the options of any script, and all that it takes."""

    batch_size: BatchSize = 48  # Images per step: the global batch of all processes.
    steps: Count = 2600  # Steps to train, each one update of every network.
    seed: Seed = 0  # Fixes the initial weights, the noise and the order of the images.
    device: str | None = None  # cpu, cuda, cuda:1, ... None: CUDA where it is available.
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16: forward passes in bfloat16; weights and losses in float32.
    runs_dir: Path = Path(__file__).resolve().parents[1] / "runs"  # Where the run's folder <script>/<time> is made.
    name: str | None = None  # Added to the name of that folder.
    log_every: Count = 50  # Steps between two points of the curves, which are means over these steps.
    sample_every: Count = 250  # Steps between two sample grids.
    checkpoint_every: Count = 500  # Steps between two checkpoints; the last step always has one.
    resume: Path | None = None  # Folder of a run to continue, with its own options; --steps may be raised.

    # No options: what `launch` ends the loops of `main` by, and whether `main` has returned.
    loops, is_done = None, False

    def to_store(self) -> dict[str, Any]:
        """Return the options as a checkpoint holds them, by name: without paths of this machine, but for the images."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("runs_dir", "resume")}
        if values.get("dataset", DATASETS[0]) not in DATASETS and Path(values["dataset"]).is_dir():
            values["dataset"] = os.path.abspath(values["dataset"])  # noqa: PTH100 (Path.resolve follows links)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


@dataclass(frozen=True)
class GanOptions(RunOptions, OptimizerOptions, NetworkOptions):  # --help begins with the last base
    """Options of the scripts with one generator and one discriminator of `common/models.py`."""


@dataclass(frozen=True)
class SimultaneousOptions(GanOptions):
    """The same where both networks answer the same weights, which takes more steps to the same quality."""

    steps: Count = 4000  # Steps to train, each one update of both networks.


def stored_options(checkpoint: dict, kind: type[RunOptions], *words: str) -> RunOptions:
    """Return the options in a checkpoint, replaced by those in `words`; raises BadInput for one that `kind` lacks."""
    stored = checkpoint["options"]
    for name in stored.keys() - kind.__dataclass_fields__.keys():
        made = f"made by {checkpoint['script']}.py with {typed(str(name), stored[name])}"
        raise BadInput(f"--resume: {made}, which this script does not have; resume it with the one that made it")
    return tyro.cli(kind, args=[*(word for item in stored.items() for word in as_words(*item)), *words])


def check_resumable(script: str, options: RunOptions, checkpoint: dict) -> None:
    """Raise BadInput unless `options` can continue the checkpoint's run, which `script` made."""
    run = options.resume
    if not run.is_dir():
        raise BadInput(f"--resume {run}: name the run's folder, not a file")
    if checkpoint["script"] != script:
        raise BadInput(f"--resume {run}: made by {checkpoint['script']}.py, not by {script}.py; resume it with that")
    free = {"steps", "device", "log_every", "sample_every", "checkpoint_every"}
    before, given = stored_options(checkpoint, type(options)).to_store(), options.to_store()
    if given["steps"] < before["steps"]:
        raise BadInput(f"--steps={given['steps']}: the run {run} has {before['steps']}, which can only be raised")
    for name in sorted(checkpoint["options"].keys() - free):  # one that the script has got since may have any value
        is_moved = name == "dataset" and not {given[name], before[name]} & {*DATASETS}
        if given[name] != before[name] and not is_moved:
            raise BadInput(f"{typed(name, given[name])}: the run {run} has {typed(name, before[name])}; leave it out")


def as_words(name: str, value: object) -> list[str]:
    """Return an option as the words of a command line."""
    flag = f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag]
    return [flag, *map(str, value)] if isinstance(value, list | tuple) else [f"{flag}={value}"]


def typed(name: str, value: object) -> str:
    """Return an option as one types it."""
    return " ".join(as_words(name, value))


def launch(main: Callable[[Any], None], kind: type[Options]) -> None:
    """Parse the command line into options of this kind, with `--resume` those of the run, and call `main` with them.

    What ends it early is one line on stderr, and status 2 for `BadInput`, 1 for `Stopped` and an OSError.
    """
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 (Python has None for one that is closed)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    description = (main.__globals__["__doc__"] or "").split("\n\n    ")[0]  # up to the first indented paragraph
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold what is no text, or no letter of a console
    try:
        with ExitStack() as opened:  # holds the loops: one that nothing refers to would end at `break` as at an error
            opened.callback(flush_stdout)
            options = tyro.cli(kind, description=description)
            if run := getattr(options, "resume", None):
                options = stored_options(load_checkpoint(run), kind, *sys.argv[1:])
            vars(options)["loops"] = opened
            main(options)
            vars(options)["is_done"] = True
    except (BadInput, Stopped, OSError) as error:
        is_shared = isinstance(error, BadInput)  # by all processes of a machine
        if not is_shared or int(os.environ.get("LOCAL_RANK", 0)) == 0:
            print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(2 if is_shared else 1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    if dist.is_initialized():
        dist.destroy_process_group()


def flush_stdout() -> None:
    """Write what has been printed; raises Stopped if it cannot be written, which Python then does not try again."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Stopped(f"stdout: {error}") from error


def one_line(message: str) -> str:
    """Return the message as one line: names in it may hold line breaks and bytes that are not text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
