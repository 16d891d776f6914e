"""Options: dataclasses whose annotations hold types and ranges, and the command line that fills them."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from inspect import get_annotations
from pathlib import Path
from types import MemberDescriptorType
from typing import Annotated, Any, Literal, get_args, get_type_hints

import tyro
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from typeguard import TypeCheckError, check_type

from common.data import DATASETS
from common.errors import ROOT, BadInput, as_bad_input
from common.image_files import Fit
from common.models import MODELS

Range = namedtuple("Range", ["low", "high"])  # of a number, both included, as in `Annotated[int, Range(1, 100)]`
Count = Annotated[int, Range(1, 10**9)]
Pixels = Annotated[int, Range(1, 4096)]
BatchSize = Annotated[int, Range(1, 2**20)]
Seed = Annotated[int, Range(0, 2**32 - 1)]  # the bits that torch takes on the CPU
Rate = Annotated[float, Range(1e-12, 10**6)]
Weight = Annotated[float, Range(0, 10**9)]
Decay = Annotated[float, Range(0, 0.999999)]


@dataclass(frozen=True)
class Options:
    """What all options derive from."""

    def __post_init__(self):
        """Raise BadInput, naming the option, for a value of another type, or a number out of its range."""
        check_class(type(self))
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            with as_bad_input(typed(name, value), TypeCheckError):
                check_type(value, kind)
            numbers = tree_leaves(value)
            for low, high in ranges_in(kind):
                if not all(number is None or low <= number <= high for number in numbers):
                    raise BadInput(f"{typed(name, value)}: must be from {low} to {high}")
            if any(number != number for number in numbers):  # NaN, which no range has, nor a run to resume
                raise BadInput(f"{typed(name, value)}: must be a number")


def ranges_in(kind: object) -> list[Range]:
    """Return the ranges in an annotation, however deep, as in `tuple[Decay, Decay] | None`."""
    parts = [] if isinstance(kind, Range) else get_args(kind)
    return [kind] if isinstance(kind, Range) else [mark for part in parts for mark in ranges_in(part)]


def check_class(kind: type[Options]) -> None:
    """Raise BadInput for a class of options of which some would have no effect: Python's dataclasses leave them out."""
    own = get_annotations(kind)
    if own and "__dataclass_params__" not in vars(kind):
        raise BadInput(f"{kind.__name__}: write @dataclass(frozen=True) above it: without, its options have no effect")
    names = {name for name, value in vars(kind).items() if not isinstance(value, MemberDescriptorType)}  # of slots
    if bare := sorted(names & {field.name for field in fields(kind)} - own.keys()):
        raise BadInput(f"{kind.__name__}.{bare[0]}: has no effect without its type, as in `steps: Count = 9`")


@dataclass(frozen=True)
class NetworkOptions(Options):
    """The images and the networks."""

    dataset: str = "mnist5k"  # mnist5k, mnist, fashion-mnist, cifar10, or a folder of images.
    image_size: Pixels | None = None  # Pixels a side of the squares. None: the data set's own, 64 for a folder.
    model: Literal["conv", "wide", "mlp"] = "conv"  # Convolutional; the same with twice the channels; fully connected.
    z_dim: Annotated[int, Range(1, 2**16)] = 64  # Length of the noise vector that the generator starts from.

    def make_networks(self, image_shape: tuple[int, int, int], **settings: float) -> tuple[nn.Module, nn.Module]:
        """Return the generator and the discriminator of `--model` for images (C, H, W), with settings of its own."""
        with as_bad_input("--image-size", ValueError):
            return MODELS[self.model](tuple(image_shape), self.z_dim, **settings)


@dataclass(frozen=True)
class RunOptions(Options):
    """What a `Run` takes from the options of any script, and all that it takes."""

    batch_size: BatchSize = 64  # Images per step: the global batch of all processes.
    steps: Count = 2000  # Steps to train, each one update of every network.
    seed: Seed = 0  # Fixes the initial weights, the noise and the order of the images.
    device: str | None = None  # cpu, cuda, cuda:1, ... None: CUDA where it is available.
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16: forward passes in bfloat16; weights and losses in float32.
    runs_dir: Path = ROOT / "runs"  # Where the run's folder <script>/<time> is made.
    name: str | None = None  # Added to the name of that folder.
    log_every: Count = 50  # Steps between two points of the curves, which are means over these steps.
    sample_every: Count = 250  # Steps between two sample grids.
    checkpoint_every: Count = 500  # Steps between two checkpoints; the last step always has one.
    init_from: Path | None = None  # Folder of a run whose weights, averaged if it has an average, the loop begins with.
    resume: Path | None = None  # Folder of a run to continue, with its own options; --steps may change.

    def check_chosen(self, given: "RunOptions") -> None:
        """Raise BadInput where main has chosen what the run used before: it can choose other options by the images."""
        for name in ("batch_size", "seed", "device", "precision"):
            if (chosen := getattr(self, name)) != getattr(given, name):
                raise BadInput(f"{typed(name, chosen)}: chosen by main, too late: the run has begun with another")

    def to_store(self) -> dict[str, Any]:
        """Return the options as a checkpoint holds them, by name: without paths of this machine, but for the data."""
        names = [field.name for field in fields(self) if field.name not in ("runs_dir", "resume")]
        values = {name: getattr(self, name) for name in names}
        is_text = isinstance(values.get("dataset"), str)
        if is_text and values["dataset"] not in DATASETS and Path(values["dataset"]).is_dir():
            values["dataset"] = str(Path(values["dataset"]).absolute())
        values |= {name: float(value) for name, value in values.items() if isinstance(value, float)}  # of NumPy's
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


@dataclass(frozen=True)
class GanOptions(RunOptions, NetworkOptions):  # --help begins with the last base
    """Options of the scripts with one generator and one discriminator of `common/models.py`."""

    lr: Rate | None = None  # Adam's rate for G up to half of the steps; then it falls to zero. None: by the images.
    lr_d: Rate | None = None  # The same, for D. None: that of --lr if it is given, else by the images.
    betas: tuple[Decay, Decay] = (0.0, 0.9)  # Adam's decay rates of the gradient's mean and of its square.
    ema: Decay = 0.995  # Decay per step of the moving average of G's weights, which draws the samples; 0: none.
    fit: Fit = "crop"  # Images that are not square: cut to their middle, or padded on white or black.
    hold_out: bool = True  # Whether a tenth of a folder of 500 images or more is kept for evaluate.py, by file name.
    augment: Literal["auto", "on", "off"] = "auto"  # Recolour, shift, cut what D sees. auto: below 10,000 in colour.
    mirror: bool = False  # Whether each image that D sees is mirrored with probability 1/2.

    def for_images(self, images: Tensor) -> "GanOptions":
        """Return the options with those left to the images, (N, C, S, S), chosen: rates and augmentation."""
        count, channels, _, size = images.shape
        is_few = channels == 3 and count < 10_000
        augment = ("on" if is_few else "off") if self.augment == "auto" else self.augment
        # Higher for small images, if D is not augmented (docs/tried.md).
        lr, lr_d = (5e-3, 5e-3) if size <= 32 and augment == "off" else (2e-3, 3e-3)
        return replace(self, lr=self.lr or lr, lr_d=self.lr_d or self.lr or lr_d, augment=augment)


@dataclass(frozen=True)
class SimultaneousOptions(GanOptions):
    """Options of the scripts in which both networks answer the same weights: more steps to the same quality."""

    lr: Rate = 2e-3  # Adam's learning rate for G, up to half of the steps; then it falls linearly to zero.
    lr_d: Rate = 3e-3  # The same, for D: simultaneous updates need a higher one.
    steps: Count = 3000  # Steps to train, each one update of both networks.


def expanded(options: Options, *names: str) -> Any:
    """Return the options with `~` in the paths of these names replaced, which a shell leaves in --runs-dir=~/runs."""
    for name in names:
        if isinstance(path := getattr(options, name), Path):
            with as_bad_input(typed(name, path), RuntimeError):  # there is no such user
                options = replace(options, **{name: path.expanduser()})
            if path.parts[:1] and path.parts[0][2:].endswith(":"):  # as in s3://bucket
                raise BadInput(f"{typed(name, path)}: is an address; name a folder of this machine")
    return options


def typed(name: str, value: object) -> str:
    """Return an option as one types it."""
    flag = name.replace("_", "-")
    return f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag}={value}"


def parse(main: Callable[..., None], kind: type[Options], default: Options | None = None) -> Any:
    """Return the command line as options of this kind; what it leaves out is as in `default`, or the kind's own."""
    description = (main.__globals__["__doc__"] or "").split("\n\n    ")[0]  # up to the first indented paragraph
    options = tyro.cli(kind, description=description, default=default)
    for name, each in get_type_hints(kind).items():
        if getattr(options, name) == "" and type(None) in get_args(each) and not default:  # a shell's unset variable
            raise BadInput(f"{typed(name, '')}: is empty; leave it out, or name something")
    return options


def parse_resumed(main: Callable[..., None], kind: type[RunOptions], script: str, checkpoint: dict) -> RunOptions:
    """Return the options with which `script` continues a checkpoint's run: its own, but for some; else BadInput."""
    if checkpoint["script"] != script:
        raise BadInput(f"--resume: made by {checkpoint['script']}.py, not by {script}.py; take that, or --init-from")
    kinds, values = get_type_hints(kind), dict(checkpoint["options"])
    if others := sorted(map(str, values.keys() ^ (kinds.keys() - {"runs_dir", "resume"}))):
        name = others[0].replace("_", "-")
        raise BadInput(f"--resume: only one of the run and this script has --{name}; take --init-from, a new run")
    for name, value in checkpoint["options"].items():
        if isinstance(value, str) and Path in (kinds[name], *get_args(kinds[name])):
            values[name] = Path(value)
    default = kind(**values)
    options = parse(main, kind, default)
    before, given, run = default.to_store(), options.to_store(), options.resume
    if options.steps < checkpoint["step"]:
        raise BadInput(f"--steps={options.steps}: the run {run} has done {checkpoint['step']} already; give more")
    if options.runs_dir != default.runs_dir and options.runs_dir.resolve() not in run.resolve().parents:
        raise BadInput(f"{typed('runs_dir', options.runs_dir)}: the run goes on in its folder, {run}; leave it out")
    free = {"steps", "device", "log_every", "sample_every", "checkpoint_every"}
    for name in sorted(before.keys() - free):
        is_moved = name == "dataset" and not {given[name], before[name]} & {*DATASETS}
        if given[name] != before[name] and not is_moved:
            raise BadInput(f"{typed(name, given[name])}: the run {run} has {typed(name, before[name])}; leave it out")
    return options
