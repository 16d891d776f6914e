"""A training run: what would be dull to read twice in the scripts.

Options, device and seed, the run's folder, TensorBoard, the progress bar, sample grids, the checkpoint, and a clean end
on Ctrl-C. The training itself, networks, optimizers and steps, stays in the scripts.
"""

import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

import torch
import tyro
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid, save_image
from tqdm import tqdm

from common.command_line import BadInput
from common.data import batches, seed_for
from common.gradient_audit import GradientAudit
from common.streaming import StreamedImages

AUDITED_STEPS = 3

# What a step returns, and where TensorBoard shows it.
TAGS = {
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
    "adversarial_loss": "loss/adversarial",
    "cycle_loss": "loss/cycle",
    "identity_loss": "loss/identity",
    "learning_rate": "learning_rate",
}


@dataclass(frozen=True)
class RunOptions:
    """Options of every training script."""

    dataset: str = "mnist5k"
    """mnist5k (5,000 digits, shipped), mnist, fashion-mnist, cifar10 (downloaded into data/), or a folder of images,
    searched recursively."""
    image_size: int | None = None
    """Pixels a side. None keeps the data set's own size; images from a folder become 64."""
    batch_size: int = 32
    """Images per step."""
    steps: int = 2400
    """Steps to train, each one update of every network."""
    lr: float = 1.5e-3
    """Adam's learning rate, for all networks."""
    betas: tuple[float, float] = (0.0, 0.99)
    """Adam's decay rates of the gradient's mean and of its square."""
    seed: int = 0
    """Fixes the initial weights, the noise and the order of the images."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""
    runs_dir: Path = Path(__file__).resolve().parents[1] / "runs"
    """Where the run's folder <script>/<date-time> is made."""
    log_every: int = 50
    """Steps between two points of the curves."""
    sample_every: int = 250
    """Steps between two sample grids."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 runs the networks in bfloat16 where autocast does; weights and losses stay in float32."""
    compile: tyro.conf.FlagCreatePairsOff[bool] = False
    """Compile the networks with torch.compile: half a minute of waiting for faster steps after it."""
    audit: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print where every gradient of the first three steps goes, then go on."""


@dataclass(frozen=True)
class GanOptions(RunOptions):
    """Options of the scripts with one generator and one discriminator."""

    model: Literal["dcgan", "mlp"] = "dcgan"
    """Convolutional networks, or fully connected ones."""
    z_dim: int = 64
    """Length of the noise vector that the generator starts from."""
    ema: float = 0.998
    """Decay of the moving average of the generator's weights that samples are drawn from; 0 draws from the last."""


class TrainingRun:
    """One run of a training script: set up with `show` and `keep`, then a loop over `steps` that calls `log`."""

    def __init__(self, script: str, options: RunOptions):
        """Check `options`, pick the device and seed torch; nothing is written before the first step.

        script: path of the training script; its name is the folder's. Raises BadInput for options that cannot work.
        """
        check_numbers(options)
        self.script = Path(script).stem
        self.options = options
        self.device = pick_device(options.device)
        self.state: dict[str, nn.Module | Optimizer] = {}
        self.pictures: dict[str, Tensor | Callable[[], Tensor]] = {}
        self.measures: dict[str, Callable[[], Tensor]] = {}
        self.measured: dict[str, float] = {}
        self.interrupted = False
        torch.manual_seed(options.seed)
        self.random_generators = [torch.default_generator]
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            self.random_generators.append(torch.cuda.default_generators[self.device.index or 0])

    def place(self, network: nn.Module) -> nn.Module:
        """Move a network to the run's device, compile it if `--compile` says so, and return it."""
        network.to(self.device)
        if self.options.compile:
            network.compile()
        return network

    def keep(self, **state: nn.Module | Optimizer) -> None:
        """Name the networks and optimizers that the checkpoint holds."""
        self.state = state

    def networks(self) -> dict[str, nn.Module]:
        """Return what `keep` named, without the optimizers."""
        return {name: part for name, part in self.state.items() if isinstance(part, nn.Module)}

    def show(self, **pictures: Tensor | Callable[[], Tensor]) -> None:
        """Name what the run shows: images (N, C, H, W) in [-1, 1], or a function that makes them every so many steps.

        Eight to a row. TensorBoard gets each under its name; those made by functions are saved together as one grid.
        """
        self.pictures = pictures

    def measure(self, measures: dict[str, Callable[[], Tensor]]) -> None:
        """Name what the run measures whenever it draws its pictures: TensorBoard's tags, and functions to 0-d tensors.

        The last of each is printed at the end, too.
        """
        self.measures = measures

    def noise(self, count: int) -> Tensor:
        """Return (count, z_dim) standard normal noise; within a step it is a function of (seed, step)."""
        return torch.randn(count, self.options.z_dim, device=self.device)

    def steps(self, *datasets: Tensor | StreamedImages) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for step 1, 2, ..., and keep the books between the steps.

        datasets: uint8 (N, C, H, W) on the run's device, or streamed to it. A batch is float (batch_size, C, H, W) in
        [-1, 1]. Raises BadInput where the run's folder cannot be written or a streamed image not be read.
        """
        options = self.options
        streams = [
            batches(images, options.batch_size, seed_for(options.seed, domain))
            for domain, images in enumerate(datasets)
        ]
        self.folder = make_run_folder(options.runs_dir / self.script)
        self.write_config([tuple(images.shape) for images in datasets])
        self.bar = tqdm(total=options.steps, desc=self.script, unit="step", dynamic_ncols=True)
        bf16 = torch.autocast(self.device.type, torch.bfloat16, enabled=options.precision == "bf16")
        with SummaryWriter(self.folder) as self.board, self.bar, finish_on_signals(self), bf16, ExitStack() as audited:
            self.board.add_text("options", markdown_table(asdict(options)))
            for name, picture in self.pictures.items():
                if isinstance(picture, Tensor):
                    self.board.add_image(name, grid(picture), 0)
            self.sample(0)
            if options.audit:
                trained = {name: part for name, part in self.networks().items() if not isinstance(part, AveragedModel)}
                audit = audited.enter_context(GradientAudit(**trained))
            self.logged_at = time.perf_counter(), 0
            for step in range(1, options.steps + 1):
                # Noise, and whatever else a step draws, is a function of (seed, step). Not torch.manual_seed: where
                # CUDA is idle, that takes half a millisecond and keeps a stack trace each time.
                for generator in self.random_generators:
                    generator.manual_seed(seed_for(options.seed, len(datasets), step))
                yield step, *map(next, streams)
                self.bar.update()
                last = self.interrupted or step == options.steps
                if options.audit and (step == AUDITED_STEPS or (last and step < AUDITED_STEPS)):
                    audited.close()
                    self.board.add_text("audit", str(audit), step)
                    tqdm.write(f"Gradients of the first {step} steps:\n\n{audit}\n")
                if last or step % options.sample_every == 0:
                    self.sample(step)
                if last:
                    break
            self.save(step)
        self.say_goodbye(step)

    def log(self, step: int, values: dict[str, Tensor | float]) -> None:
        """Show what a step returned, 0-d tensors or numbers, every `--log-every` steps: the one point of waiting."""
        if step % self.options.log_every and step not in (1, self.options.steps):
            return
        tensors = [torch.as_tensor(value, device=self.device) for value in values.values()]
        numbers = dict(zip(values, torch.stack(tensors).tolist(), strict=True))
        now, (then, before) = time.perf_counter(), self.logged_at
        self.logged_at = now, step
        speed = (step - before) * self.options.batch_size / (now - then)
        for name, number in numbers.items():
            self.board.add_scalar(TAGS[name], number, step)
        self.board.add_scalar("throughput/images_per_second", speed, step)
        losses = " ".join(f"{name} {number:.3f}" for name, number in numbers.items() if name.endswith("loss"))
        self.bar.set_postfix_str(f"{losses}, {speed:,.0f} images/s", refresh=False)

    def sample(self, step: int) -> None:
        """Write the pictures as they are after `step`."""
        for network in self.networks().values():
            network.eval()
        with torch.no_grad():
            drawn = {name: make() for name, make in self.pictures.items() if callable(make)}
            self.measured = {name: measure().item() for name, measure in self.measures.items()}
        for network in self.networks().values():
            network.train()
        for name, images in drawn.items():
            self.board.add_image(name, grid(images), step)
        for name, number in self.measured.items():
            self.board.add_scalar(name, number, step)
        (self.folder / "samples").mkdir(exist_ok=True)
        everything = grid(torch.cat(list(drawn.values())))
        write_whole(self.sample_path(step), lambda file: save_image(everything, file, format="png"))

    def sample_path(self, step: int) -> Path:
        """Return where the grid made after `step` lies."""
        return self.folder / "samples" / f"step-{step:06d}.png"

    def save(self, step: int) -> None:
        """Write `checkpoint.pt`: plain data and tensors alone, so that it loads with `weights_only=True`."""
        checkpoint = json.loads((self.folder / "config.json").read_text()) | {"step": step}
        checkpoint |= {name: part.state_dict() for name, part in self.state.items()}
        write_whole(self.folder / "checkpoint.pt", lambda file: torch.save(checkpoint, file))

    def write_config(self, shapes: list[tuple[int, ...]]) -> None:
        """Write `config.json`: the script, its options, the data's shapes, and what it ran on."""
        config = {
            "script": self.script,
            "options": {
                name: str(value) if isinstance(value, Path) else value for name, value in asdict(self.options).items()
            },
            "data_shapes": shapes,
            "device": str(self.device),
            "torch": torch.__version__,
        }
        write_whole(self.folder / "config.json", lambda file: file.write(json.dumps(config, indent=2).encode()))

    def say_goodbye(self, step: int) -> None:
        """Say where the results are and how to look at them."""
        print(f"Interrupted after step {step}." if self.interrupted else f"Done: {step} steps.")
        for name, number in self.measured.items():
            print(f"{name}: {number:.4f}")
        print(f"Samples:     {shown(self.sample_path(step))}")
        print(f"More images: python scripts/sample.py {shown(self.folder)}")
        print(f"TensorBoard: tensorboard --logdir {shown(self.options.runs_dir)}")


def check_numbers(options: RunOptions) -> None:
    """Raise BadInput for numbers that make no sense: all must be finite and positive, seed 0 or more, betas below 1."""
    for field in fields(options):
        value = getattr(options, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            flag = f"--{field.name.replace('_', '-')} {number}"
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


def pick_device(name: str | None) -> torch.device:
    """Return the device called `name`, by default CUDA where it is available; raises BadInput if it is not there."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        found = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise BadInput(f"--device {name}: not on this machine, which has {', '.join(found)}") from error
    return torch.device(name)


def make_run_folder(parent: Path) -> Path:
    """Make and return a folder named after this second, with a number behind it if another run was as quick."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for suffix in ["", *(f"-{number}" for number in range(2, 100))]:
            folder = parent / (name + suffix)
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                continue
        raise FileExistsError(f"{parent / name} and 98 more exist")
    except OSError as error:
        raise BadInput(f"--runs-dir: {parent} cannot be written ({error.strerror or error}); choose another") from error


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` on a temporary file beside `path` and rename it: `path` is the old file or the new, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def finish_on_signals(run: TrainingRun) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `run.interrupted`, so that no step is cut in two; a second one acts as ever."""

    def finish(signum, frame):
        run.interrupted = True
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, finish) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def load_checkpoint(run: Path) -> dict:
    """Return what `TrainingRun.save` wrote into the folder `run`, on the CPU; `run` may also be the file itself.

    Nothing in the file is executed. Raises BadInput where there is no checkpoint or it cannot be read.
    """
    path = run / "checkpoint.pt" if run.is_dir() else run
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        checkpoint["script"], checkpoint["options"], checkpoint["data_shapes"]
    except FileNotFoundError as error:
        raise BadInput(f"{path}: not found; name the folder of a run that has saved a checkpoint") from error
    except Exception as error:  # a broken file can fail anywhere inside the unpickler
        raise BadInput(f"{path}: not a checkpoint of these scripts ({type(error).__name__})") from error
    return checkpoint


def grid(images: Tensor, columns: int = 8) -> Tensor:
    """Return images (N, C, H, W) in [-1, 1] as one picture (3, h, w) in [0, 1]."""
    return make_grid(images.float().cpu(), nrow=columns, normalize=True, value_range=(-1, 1))


def markdown_table(rows: dict[str, object]) -> str:
    """Return a two-column table for TensorBoard's text tab."""
    return "| option | value |\n| --- | --- |\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def shown(path: Path) -> Path:
    """Return `path` as short as the current folder allows."""
    path, here = path.resolve(), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
